"""Ablation: what heads, neurons and attention edges do for the answers."""
