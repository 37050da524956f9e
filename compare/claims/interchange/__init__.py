"""Interchange interventions: the program's variables, put into the learned model."""
