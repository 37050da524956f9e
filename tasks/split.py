"""Which inputs are held out, decided by the input alone: no list of them needs to be kept."""

import numpy as np
from jaxtyping import Bool, Int

SHARE = 5
"""One input in this many is held out."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Fibonacci hashing spreads all bits upwards


def held_out_by_hash(ids: Int[np.ndarray, "batch pos"]) -> Bool[np.ndarray, " batch"]:
    """Whether each row belongs to the held-out fifth: a fixed hash of its ids, the same everywhere."""
    digest = np.zeros(len(ids), dtype=np.uint64)
    for column in ids.T.astype(np.uint64):
        digest = (digest ^ (column + np.uint64(1))) * _MULTIPLIER
        digest ^= digest >> np.uint64(29)
    return digest % np.uint64(SHARE) == 0
