"""Which positions may attend to which: boolean arrays, one `[query, key]` matrix per layer.

A row that is false throughout stays silent: its pattern is zero and the head writes nothing there.
"""

import numpy as np
from jaxtyping import Bool


def causal_mask(n_layers: int, n_ctx: int) -> Bool[np.ndarray, "layer query key"]:
    """Every position sees itself and what comes before."""
    return _every_layer(np.tri(n_ctx, dtype=bool), n_layers)


def bidirectional_mask(n_layers: int, n_ctx: int) -> Bool[np.ndarray, "layer query key"]:
    """Every position sees every position."""
    return _every_layer(np.ones((n_ctx, n_ctx), dtype=bool), n_layers)


def _every_layer(mask: np.ndarray, n_layers: int) -> np.ndarray:
    return np.repeat(mask[None], n_layers, axis=0)
