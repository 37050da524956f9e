"""Weighted programs beside a model: fitted to what it does under interventions, and judged by that."""
