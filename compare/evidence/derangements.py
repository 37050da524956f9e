"""Random permutations that controls are made of."""

import numpy as np
from jaxtyping import Int


def derangement(n: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """A permutation of two or more that leaves nothing in place: a random cycle."""
    order = rng.permutation(n)
    shuffled = np.empty(n, dtype=int)
    shuffled[order] = np.roll(order, 1)
    return shuffled
