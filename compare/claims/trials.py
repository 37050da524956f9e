"""Independent trials: of each pair of inputs one answer counts; answers of one pair depend on one another."""

import numpy as np
from jaxtyping import Bool


def one_of_each(
    right: Bool[np.ndarray, "pair answer"], which: Bool[np.ndarray, "pair answer"], rng: np.random.Generator
) -> Bool[np.ndarray, " _"]:
    """For each pair with any such answer, whether one of them, drawn at random, is right."""
    chosen = np.where(which, rng.random(which.shape), -1).argmax(axis=1)
    return np.asarray(right[np.arange(len(right)), chosen][which.any(axis=1)])
