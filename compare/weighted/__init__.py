"""Weighted programs beside a model: fitted to what it does under interventions, and judged by that."""

from rasplens.compare.weighted.fit import FitConfig, fit
from rasplens.compare.weighted.statement import Agreement, Statement, state

__all__ = ["Agreement", "FitConfig", "Statement", "fit", "state"]
