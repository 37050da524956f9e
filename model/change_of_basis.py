"""What reads the residual stream and what writes to it: where another basis for it, or another width, goes in."""

from collections.abc import Callable, Mapping
from typing import Any

Array = Any
"""numpy's or JAX's."""

READS = ("W_Q", "W_K", "W_V", "W_in", "W_U")
"""Their last axis but one is d_model."""

WRITES = ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out")
"""Their last axis is d_model."""


def on_residual(
    weights: Mapping[str, Array], read: Callable[[Array], Array], write: Callable[[Array], Array]
) -> dict[str, Array]:
    """Weights in which everything that reads the residual stream, and everything that writes to it, is changed.

    Args:
        weights: A transformer's, by name.
        read: From an array `[..., d_model, n]` to what takes its place.
        write: From an array `[..., d_model]` to what takes its place.
    """
    return {
        name: read(array) if name.endswith(READS) else write(array) if name.endswith(WRITES) else array
        for name, array in weights.items()
    }
