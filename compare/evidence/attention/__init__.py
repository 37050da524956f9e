"""Attention: which learned head attends like which compiled head."""
