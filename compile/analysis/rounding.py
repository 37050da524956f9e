"""How far rounding may take a number in float32, and whether its values are still told apart.

Every number is an exact value and an error. The error is bounded by a running analysis: each operation hands
on the errors of what it reads and adds a few roundings of the largest number that it adds up, wherever large
terms cancel.
Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise

import numpy as np

from rasplens.compile.errors import PrecisionError
from rasplens.compile.ir import AggregateNode, FiniteGraph, LinearNode, VariableNode, WhereNode
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.values import exact

ROUNDING = 2.0**-24
"""The relative error of rounding to float32."""

READ, ADDED = 4, 2
"""Roundings of a number that is read from a table, and of one that an operation adds up."""

LEAK = 1e-11
"""The most attention that all unselected positions together may keep."""

ROOM = 4
"""How many times the rounding error must fit into the gap between two values."""

SMALLEST = 1e-30
"""The least gap between two values: slopes of neurons are its inverse."""


@dataclass(frozen=True)
class Rounding:
    """The rounding of a number in float32.

    Attributes:
        largest: The largest number, in absolute value, that is added up on the way to it.
        error: How far it may be off.
    """

    largest: float
    error: float


Read = Callable[[int], Rounding]
"""Rounding of the variable with an id, where it is read as a number."""


def check_precision(graph: FiniteGraph) -> None:
    """Refuses numbers whose values float32 cannot hold apart.

    Raises:
        PrecisionError: With the two closest values of the first such number.
    """
    for i, rounding in roundings(graph).items():
        _check(graph.variable(i), rounding)


def is_held_apart(gap: float, largest: float) -> bool:
    """Whether float32 holds apart what is this far apart, of sums of terms that add up to at most `largest`."""
    return gap >= ROOM * (READ + ADDED) * ROUNDING * largest


def roundings(graph: FiniteGraph) -> dict[int, Rounding]:
    """By id of every variable that is held as a number, what float32 makes of it."""
    found: dict[int, Rounding] = {}

    def read(source: int) -> Rounding:
        return found[source] if source in found else _of_table(graph.variable(source))

    for i in graph.variables:
        node = graph.variable(i)
        if node.is_numerical:
            found[i] = _rounding(node, read)
    return found


def _check(node: VariableNode, rounding: Rounding) -> None:
    numbers = [exact(_number(value)) for value in node.values]
    needed = ROOM * rounding.error
    if len(numbers) == 1 and needed > max(1.0, abs(float(numbers[0]))):
        raise PrecisionError(
            f"{node.name!r} is {node.values[0]!r}, but float32 may be off by {rounding.error:.2g}, as it adds "
            f"numbers up to {rounding.largest:g}. Rescale them.",
            node.expr,
        )
    gaps = [float(after - before) for before, after in pairwise(numbers)]
    if gaps and min(gaps) < max(needed, SMALLEST):
        at = int(np.argmin(gaps))
        raise PrecisionError(
            f"{node.name!r} can be {node.values[at]!r} and {node.values[at + 1]!r}, too close together for "
            f"float32 next to numbers up to {rounding.largest:g}. Rescale, shift or round them.",
            node.expr,
        )


def _number(value: Value) -> float:
    """A value of a variable that is read as a number, which analysis has made sure of."""
    if not isinstance(value, bool | int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


@singledispatch
def _rounding(node: VariableNode, read: Read) -> Rounding:
    return _of_table(node)


@_rounding.register
def _(node: LinearNode, read: Read) -> Rounding:
    terms = [
        (abs(float(exact(factor))), read(source))
        for factor, source in zip((node.fst_fac, node.snd_fac), node.inputs, strict=True)
    ]
    largest = sum(factor * term.largest for factor, term in terms)
    return Rounding(largest, sum(factor * term.error for factor, term in terms) + ADDED * ROUNDING * largest)


@_rounding.register
def _(node: AggregateNode, read: Read) -> Rounding:
    fallback = max([0.0, *(abs(float(_number(value))) for value in node.fallbacks if value is not None)])
    sources = [Rounding(fallback, READ * ROUNDING * fallback), *(read(source) for _, source in node.pairs)]
    largest, error = max(term.largest for term in sources), max(term.error for term in sources)
    return Rounding(largest, error + LEAK * largest)


@_rounding.register
def _(node: WhereNode, read: Read) -> Rounding:
    branches = [read(source) for source in node.inputs[1:]]
    largest = max(branch.largest for branch in branches)
    return Rounding(largest, max(branch.error for branch in branches) + ADDED * ROUNDING * largest)


def _of_table(node: VariableNode) -> Rounding:
    """Of a number that is written as it stands, or read from one direction a value."""
    largest = max(abs(exact(_number(value))) for value in node.values)
    return Rounding(float(largest), READ * ROUNDING * float(largest))
