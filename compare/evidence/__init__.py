"""The evidence of a comparison: one room an axis, each score beside its controls."""
