"""Graphs whose every node is finite: what each variable can be, and each function and predicate as a table."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from rasplens.compile.errors import CompileError
from rasplens.compile.ir import Node
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.values import NUMBERS_AGREE, as_number, value_key

MAX_VALUES = 20_000
"""The most values that a variable may take."""

RESOLUTION = 2.0**-20
"""The least gap between two values of a number, relative to the largest: float32 resolves an eighth of it."""

LARGEST, SMALLEST = 1e30, 1e-30
"""The most that a number may be, and the least gap between two: slopes of neurons are ratios of such numbers."""

UNDEFINED = -1
"""The code of None in tables: as an index it is the last place, which tables keep for it."""


@dataclass(frozen=True, eq=False)
class Domain:
    """What a variable can be.

    Attributes:
        values: Its values; a value's place is its code. Numbers held as such are in ascending order.
        is_partial: Whether it can also be undefined.
        same: By code, for numbers that rounding tells apart: all that this value stands for.
    """

    values: tuple[Value, ...]
    is_partial: bool
    same: dict[int, tuple[Value, ...]] = field(default_factory=dict)

    def codes(self) -> dict[tuple, int]:
        """The code of each value, by `value_key`."""
        return {value_key(value): code for code, value in enumerate(self.values)}

    def variants(self, code: int) -> tuple[Value, ...]:
        """The value of a code, or None; and what rounding makes of it elsewhere."""
        if code in (UNDEFINED, len(self.values)):
            return (None,)
        return self.same.get(code, (self.values[code],))


@dataclass(frozen=True, eq=False)
class FiniteNode(Node):
    """One operation over finitely many values.

    Attributes:
        domain: The values of a variable; none for a selector.
        table: For `Apply`, result codes by input codes; for `Match` and `MatchBest`, booleans
            `[key code, query code]`. The last place of every axis is for undefined inputs.
        met: Where the table can be met at all; None for everywhere.
        raises: Where the function or predicate raised an error, by codes, and the error.
        may_be_empty: Whether a selector may select nothing where a position sees something.
        fallbacks: What a variable is where its selector selects nothing: one value, none if that cannot be.
        by_layout: Its codes `[length - 1, position]` where they depend on nothing else.
    """

    domain: Domain = Domain((), is_partial=False)
    table: np.ndarray | None = None
    met: np.ndarray | None = None
    raises: dict[tuple[int, ...], Exception] = field(default_factory=dict)
    may_be_empty: bool = False
    fallbacks: tuple[Value, ...] = ()
    by_layout: np.ndarray | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of a variable."""
        return self.domain.values

    @property
    def raw_values(self) -> list[Value]:
        """The values of a variable, with those that only rounding tells apart."""
        return [value for code in range(len(self.values)) for value in self.domain.variants(code)]

    @property
    def is_partial(self) -> bool:
        """Whether a variable can be undefined."""
        return self.domain.is_partial

    @property
    def is_numerical(self) -> bool:
        """Whether a variable is held as a number."""
        return self.encoding is Encoding.NUMERICAL


@dataclass(frozen=True, eq=False)
class Finite:
    """A graph whose every node is finite; a node's id is its place.

    Attributes:
        nodes: The operations, each after what it reads; the first is always `Tokens`.
        output: The id of the program's result.
        names: The ids of the variables by name; one variable may have several.
    """

    nodes: tuple[FiniteNode, ...]
    output: int
    names: dict[str, int]

    @property
    def variables(self) -> tuple[int, ...]:
        """The ids of everything that is no selector."""
        return tuple(i for i, node in enumerate(self.nodes) if not node.is_selector)

    def inputs(self, i: int) -> list[FiniteNode]:
        """What a node reads."""
        return [self.nodes[source] for source in self.nodes[i].inputs]


def finish(node: Node, **found: Any) -> FiniteNode:
    """A node with what was found of it."""
    return FiniteNode(node.op, node.inputs, node.name, node.encoding, node.expr, **found)


def make_domain(node: Node, values: Iterable[Value], is_partial: bool) -> Domain:
    """The domain of some values, in the order of the node's encoding.

    Raises:
        CompileError: If there are none or too many, or as numbers they cannot be held.
    """
    by_key: dict[tuple, Value] = {}
    for value in values:
        if node.encoding is Encoding.NUMERICAL:
            value = held_number(node, value)
        by_key.setdefault(value_key(value), value)
        if len(by_key) > MAX_VALUES:
            raise CompileError(
                f"{node.name!r} can take more than {MAX_VALUES:,} values. Reduce the vocabulary or "
                "max_len, or round the values.",
                node.expr,
            )
    if not by_key:
        raise CompileError(f"{node.name!r} is undefined whatever the input.", node.expr)
    if node.encoding is not Encoding.NUMERICAL:
        return Domain(tuple(by_key.values()), is_partial)
    return _numbers(node, sorted(by_key.values()), is_partial)


def _numbers(node: Node, ascending: list[Value], is_partial: bool) -> Domain:
    """Numbers in order; sums that differ by rounding alone are one.

    Raises:
        CompileError: If two are closer than the weights can resolve.
    """
    largest = max(abs(float(value)) for value in ascending)
    groups: list[list[Value]] = []
    for value in ascending:
        if groups and float(value) - float(groups[-1][0]) <= NUMBERS_AGREE * largest:
            groups[-1].append(value)
        else:
            groups.append([value])
    values = [group[0] for group in groups]
    gaps = np.diff(np.array([float(value) for value in values]))
    if len(gaps) and gaps.min() < max(RESOLUTION * largest, SMALLEST):
        at = int(gaps.argmin())
        raise CompileError(
            f"{node.name!r} can be {values[at]} and {values[at + 1]}, which is too close together for numbers up "
            f"to {largest:g}: weights resolve a millionth. Rescale or round it, or wrap it in categorical(...).",
            node.expr,
        )
    return Domain(tuple(values), is_partial, {i: tuple(g) for i, g in enumerate(groups) if len(g) > 1})


def held_number(node: Node, value: Value) -> Value:
    """The number that a value is held as.

    Raises:
        CompileError: If it is none, or too large for any weight.
    """
    if not isinstance(value, bool | int | float | Fraction):
        raise CompileError(
            f"{node.name!r} is to be held as a number but can be {value!r}. Wrap it in categorical(...).",
            node.expr,
        )
    number = as_number(value)
    try:
        is_finite = abs(float(number)) <= LARGEST
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise CompileError(f"{node.name!r} can be {value}, which no weight can hold. Rescale it.", node.expr)
    return number


def coder(node: Node, domain: Domain) -> Callable[[Value], int]:
    """The code of a value of the domain; of the nearest number, up to rounding."""
    if node.encoding is Encoding.NUMERICAL:
        numbers = np.array([float(value) for value in domain.values])
        return lambda value: int(np.abs(numbers - float(value)).argmin())
    codes = domain.codes()
    return lambda value: codes[value_key(value)]
