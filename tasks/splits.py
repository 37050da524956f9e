"""Which inputs are held out, decided by the input alone: no list of them needs to be kept."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

from rasplens.errors import RaspLensError

SHARE = 5
"""One input in this many is held out."""

Ids = Int[np.ndarray, "batch pos"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Fibonacci hashing spreads all bits upwards


def held_out_by_hash(ids: Ids) -> Bool[np.ndarray, " batch"]:
    """Whether each row belongs to the held-out fifth: a fixed hash of its ids, the same everywhere."""
    digest = np.zeros(len(ids), dtype=np.uint64)
    for column in ids.T.astype(np.uint64):
        digest = (digest ^ (column + np.uint64(1))) * _MULTIPLIER
        digest ^= digest >> np.uint64(29)
    return digest % np.uint64(SHARE) == 0


def held_out_inputs(
    draw: Callable[[np.random.Generator, int], Ids], is_held_out: Callable[[Ids], np.ndarray], most: int
) -> Ids:
    """Up to `most` different held-out inputs, in a fixed random order.

    Raises:
        RaspLensError: If there are too few inputs to hold some out and train on others.
    """
    drawn = draw(np.random.default_rng(0), 8 * most)
    candidates = drawn[np.sort(np.unique(drawn, axis=0, return_index=True)[1])]
    chosen = is_held_out(candidates)
    if chosen.all() or not chosen.any():
        raise RaspLensError(
            f"The task has too few different inputs ({len(candidates)} were drawn) to hold some out and train "
            "on others. Make it larger."
        )
    return candidates[chosen][:most]
