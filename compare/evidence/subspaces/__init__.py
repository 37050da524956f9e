"""Residual subspaces: where variables can be decoded, and what represents them."""
