"""Does a program have a value on every input? What RASP leaves undefined is found before it is compiled.

An average of different words has no value, and neither has a function where it raises. The inputs are
enumerated where there are few enough, and sampled otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rasplens.compile import graph as ops
from rasplens.compile.finite import Finite
from rasplens.compile.inputs import InputSpace
from rasplens.compile.rasp import Value
from rasplens.compile.trace import trace

ENUMERATED = 100_000
"""Input spaces of at most this many sequences are searched in full."""

SAMPLES = 2_000
"""How many sequences of a larger one are searched."""


@dataclass(frozen=True)
class Gap:
    """A smallest input on which a program has no value, as far as the search went.

    Attributes:
        node: The id of the first operation without one.
        tokens: The input.
    """

    node: int
    tokens: tuple[Value, ...]


def find_gap(finite: Finite, space: InputSpace) -> Gap | None:
    """An input on which some variable has no value; None if none was found."""
    if not any(_is_risky(i, finite) for i in range(len(finite.nodes))):
        return None
    for ids in searched(space):
        found = trace(finite, ids, space.visible)
        failing = np.flatnonzero(found.fails())
        if len(failing):
            row = int(failing[0])
            node = next(i for i, where in sorted(found.failures.items()) if where[row])
            return Gap(node, tuple(space.vocab[token] for token in ids[row].tolist()))
    return None


def searched(space: InputSpace) -> Iterator[np.ndarray]:
    """The inputs to search, as ids: all where there are few enough, else a fixed sample; the short first."""
    return space.all_ids() if space.size <= ENUMERATED else space.sampled_ids(SAMPLES, seed=0)


def _is_risky(i: int, finite: Finite) -> bool:
    """Whether an operation may have no value: it may mix what cannot be averaged, or its function may raise."""
    node = finite.nodes[i]
    if node.raises:
        return True
    if not isinstance(node.op, ops.Gather):
        return False
    source = finite.nodes[node.inputs[1]]
    return source.is_partial if node.is_numerical else len(source.values) + source.is_partial > 1
