"""The optimiser: passes that make a finite graph smaller without changing what it computes."""
