"""Which variables a compiled model has directions for, and what their values on some inputs say of each other."""

import numpy as np

from rasplens.compare.models.kinds import kinds
from rasplens.compile import CompiledModel, Variable

MOST_COMMON = 0.95
"""A variable whose commonest value covers more of the inputs than this counts as constant there."""


def own_variables(compiled: CompiledModel) -> dict[str, Variable]:
    """The variables with directions of their own: s-ops that are no mere views of others, and kinds."""
    return {name: one for name, one in compiled.variables.items() if one.is_own} | kinds(compiled)


def varies(codes: np.ndarray) -> bool:
    """Whether a variable takes more than one value often enough to be told apart."""
    _, counts = np.unique(codes, return_counts=True)
    return bool(counts.max() <= MOST_COMMON * len(codes))


def determines(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the second variable is a function of the first, on the inputs at hand."""
    pairs = np.unique(np.stack([first, second]), axis=1)
    return pairs.shape[1] == len(np.unique(first))
