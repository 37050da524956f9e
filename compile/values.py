"""Which values every variable can take, and every function and predicate as a table over them.

The values are a superset of those that occur: inputs are combined as if they were independent, except
for variables that follow from the length and the position alone, which are known exactly. From here on
a program is finite, and its Python functions are not called again.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from rasplens.compile import graph as ops
from rasplens.compile.emptiness import Conjunct, may_be_empty, some_position_sees_nothing
from rasplens.compile.equality import NUMBERS_AGREE, as_number, exact, plain, value_key
from rasplens.compile.errors import CompileError
from rasplens.compile.graph import Graph, Node
from rasplens.compile.inputs import InputSpace
from rasplens.compile.rasp import Encoding, Value

MAX_VALUES = 20_000
"""The most values that a variable may take."""

MAX_COMBINATIONS = 2_000_000
"""The most combinations of values that an operation of two variables, or a selector, may meet."""

RESOLUTION = 2.0**-20
"""The least gap between two values of a number, relative to the largest: float32 resolves an eighth of it."""

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


def reachable_values(graph: Graph, inputs: InputSpace) -> Finite:
    """The graph with the values and tables of every node.

    Raises:
        CompileError: If a variable takes too many values, is never defined, is to be held as a number
            without being one or beyond the precision of the weights, or if a function tells apart what
            differs by rounding alone.
    """
    nodes: list[FiniteNode] = []
    for node in graph.nodes:
        nodes.append(_analyse(node.op, node, _Analysis(inputs, nodes)))
    names = {node.name: i for i, node in enumerate(nodes) if not node.is_selector}
    return Finite(tuple(nodes), graph.output, names)


@dataclass(frozen=True, eq=False)
class _Analysis:
    """What has been found before a node."""

    space: InputSpace
    nodes: list[FiniteNode]

    def inputs(self, node: Node) -> list[FiniteNode]:
        """What a node reads."""
        return [self.nodes[i] for i in node.inputs]

    @property
    def widest(self) -> int:
        """The most keys that a position sees."""
        return int(self.space.visible.sum(axis=1).max())

    @property
    def exists(self) -> np.ndarray:
        """Boolean `[length - 1, position]`: whether sequences of a length have a position."""
        return np.tri(self.space.max_len, dtype=bool)


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
            value = _number(node, value)
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
    if len(gaps) and gaps.min() < RESOLUTION * largest:
        at = int(gaps.argmin())
        raise CompileError(
            f"{node.name!r} can be {values[at]} and {values[at + 1]}, which is too close together for numbers up "
            f"to {largest:g}: weights resolve a millionth. Rescale or round it, or wrap it in categorical(...).",
            node.expr,
        )
    return Domain(tuple(values), is_partial, {i: tuple(g) for i, g in enumerate(groups) if len(g) > 1})


def _number(node: Node, value: Value) -> Value:
    if not isinstance(value, bool | int | float | Fraction):
        raise CompileError(
            f"{node.name!r} is to be held as a number but can be {value!r}. Wrap it in categorical(...).",
            node.expr,
        )
    number = as_number(value)
    try:
        is_finite = abs(float(number)) <= float(np.finfo(np.float32).max)
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise CompileError(f"{node.name!r} can be {value}, which no weight can hold. Rescale it.", node.expr)
    return number


@singledispatch
def _analyse(op: object, node: Node, analysis: _Analysis) -> FiniteNode:
    raise AssertionError(f"no analysis of {op}")


@_analyse.register
def _(op: ops.Tokens, node: Node, analysis: _Analysis) -> FiniteNode:
    return finish(node, domain=make_domain(node, analysis.space.vocab, is_partial=False))


@_analyse.register
def _(op: ops.Indices, node: Node, analysis: _Analysis) -> FiniteNode:
    n = analysis.space.max_len
    codes = np.where(analysis.exists, np.arange(n), UNDEFINED)
    return finish(node, domain=make_domain(node, range(n), is_partial=False), by_layout=codes)


@_analyse.register
def _(op: ops.Apply, node: Node, analysis: _Analysis) -> FiniteNode:
    inputs = analysis.inputs(node)
    _check_combinations(node, inputs)
    sizes = [len(source.values) + 1 for source in inputs]
    met = _met(node, inputs, sizes, analysis)
    if not op.takes_none:
        for axis in range(len(sizes)):
            met[(slice(None),) * axis + (UNDEFINED,)] = False
    results: dict[tuple[int, ...], Value] = {}
    raises: dict[tuple[int, ...], Exception] = {}
    for at in zip(*(axis.tolist() for axis in np.nonzero(met)), strict=True):
        try:
            results[at] = _call(node, op.function, [s.domain.variants(c) for s, c in zip(inputs, at, strict=True)])
        except CompileError:
            raise
        except Exception as error:  # perhaps on arguments that never meet in a real input
            results[at], raises[at] = None, error
    values = [result for result in results.values() if result is not None]
    if not values and raises:
        failure = next(iter(raises.values()))
        raise CompileError(
            f"The function of {node.name!r} always fails: {type(failure).__name__}: {failure}.", node.expr
        )
    can_fail = len(values) < len(results) or (not op.takes_none and any(source.is_partial for source in inputs))
    domain = make_domain(node, values, can_fail)
    code_of = coder(node, domain)
    table = np.full(sizes, UNDEFINED)
    for at, result in results.items():
        table[at] = UNDEFINED if result is None else code_of(result)
    return finish(
        node,
        domain=domain,
        table=table,
        met=met,
        raises=raises,
        by_layout=_table_by_layout(table, inputs, analysis),
    )


def _met(node: Node, inputs: Sequence[FiniteNode], sizes: Sequence[int], analysis: _Analysis) -> np.ndarray:
    """Which combinations of inputs can meet, as far as that is known without running the program."""
    if all(source.by_layout is not None for source in inputs):
        met = np.zeros(sizes, dtype=bool)
        met[tuple(source.by_layout[analysis.exists] for source in inputs if source.by_layout is not None)] = True
        return met
    met = np.ones(sizes, dtype=bool)
    for axis, source in enumerate(inputs):
        if not source.is_partial:
            met[(slice(None),) * axis + (UNDEFINED,)] = False
    if len(node.inputs) == 2 and node.inputs[0] == node.inputs[1]:
        met &= np.eye(sizes[0], dtype=bool)
    return met


def _table_by_layout(table: np.ndarray, inputs: Sequence[FiniteNode], analysis: _Analysis) -> np.ndarray | None:
    if any(source.by_layout is None for source in inputs):
        return None
    return np.where(analysis.exists, table[tuple(source.by_layout for source in inputs)], UNDEFINED)


@_analyse.register
def _(op: ops.Linear, node: Node, analysis: _Analysis) -> FiniteNode:
    fst, snd = analysis.inputs(node)
    _check_combinations(node, (fst, snd))
    factors = [_factor(node, factor) for factor in (op.fst_fac, op.snd_fac)]
    terms = [
        {factor * exact(_number(source, value)) for value in source.raw_values}
        for factor, source in zip(factors, (fst, snd), strict=True)
    ]
    sums = {x + y for x in terms[0] for y in terms[1]}
    return finish(node, domain=make_domain(node, sums, fst.is_partial or snd.is_partial))


def _factor(node: Node, factor: Any) -> Fraction:
    if not isinstance(factor, int | float) or not math.isfinite(factor):
        raise CompileError(f"A factor of {node.name!r} is {factor!r}; it must be a finite number.", node.expr)
    return exact(factor)


@_analyse.register
def _(op: ops.Choose, node: Node, analysis: _Analysis) -> FiniteNode:
    condition, then, otherwise = analysis.inputs(node)
    branches = [
        branch
        for branch, wanted in ((then, True), (otherwise, False))
        if any(bool(value) is wanted for value in condition.values)
    ]
    values = itertools.chain.from_iterable(branch.values for branch in branches)
    is_partial = condition.is_partial or any(branch.is_partial for branch in branches)
    return finish(node, domain=make_domain(node, values, is_partial))


@_analyse.register
def _(op: ops.Gather, node: Node, analysis: _Analysis) -> FiniteNode:
    selector, source = analysis.inputs(node)
    reached: Iterable[Value] = source.values
    if node.encoding is Encoding.NUMERICAL:
        reached = _means(node, [_number(node, value) for value in source.raw_values], analysis.widest)
    is_silent = selector.may_be_empty or some_position_sees_nothing(analysis.space.visible)
    fallbacks = (op.default,) if is_silent else ()
    defaults = [value for value in fallbacks if value is not None]
    domain = make_domain(node, itertools.chain(reached, defaults), source.is_partial or None in fallbacks)
    return finish(node, domain=domain, fallbacks=fallbacks)


@_analyse.register
def _(op: ops.BosShare, node: Node, analysis: _Analysis) -> FiniteNode:
    (selector,) = analysis.inputs(node)
    visible = analysis.space.visible
    if op.of_length and not visible.all():
        raise CompileError(
            "`length` is the length of the whole sequence, which not every position sees here. Count what is "
            "seen instead: SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).",
            node.expr,
        )
    selected = _selected_by_layout(selector, analysis)
    if selected is None:
        least = 0 if selector.may_be_empty or some_position_sees_nothing(visible) else 1
        shares = [Fraction(1, 1 + width) for width in range(least, analysis.widest + 1)]
        return finish(node, domain=make_domain(node, shares, is_partial=False), fallbacks=(1.0,))
    widths = selected.sum(axis=-1)
    domain = make_domain(node, (Fraction(1, 1 + int(w)) for w in np.unique(widths[analysis.exists])), False)
    code_of = coder(node, domain)
    codes = np.array(
        [[code_of(1 / (1 + int(w))) for w in row] for row in np.where(analysis.exists, widths, widths[0, 0])]
    )
    return finish(node, domain=domain, fallbacks=(1.0,), by_layout=np.where(analysis.exists, codes, UNDEFINED))


@_analyse.register(ops.Match)
@_analyse.register(ops.MatchBest)
def _(op: ops.Match | ops.MatchBest, node: Node, analysis: _Analysis) -> FiniteNode:
    keys, queries, *score = analysis.inputs(node)
    _check_combinations(node, (keys, queries))
    table = np.zeros((len(keys.values) + 1, len(queries.values) + 1), dtype=bool)
    raises: dict[tuple[int, ...], Exception] = {}
    takes_none = isinstance(op, ops.Match) and op.takes_none
    for at in itertools.product(*(_argument_codes(source, takes_none) for source in (keys, queries))):
        try:
            variants = [keys.domain.variants(at[0]), queries.domain.variants(at[1])]
            table[at] = _call(node, lambda key, query: bool(op.predicate(key, query)), variants)
        except CompileError:
            raise
        except Exception as error:
            raises[at] = error
    if raises and len(raises) == len(keys.values) * len(queries.values):
        failure = next(iter(raises.values()))
        raise CompileError(
            f"The predicate of {node.name!r} always fails: {type(failure).__name__}: {failure}.", node.expr
        )
    if score:
        _check_order(node, score[0])
    found = finish(node, table=table, raises=raises)
    visible = analysis.space.visible
    has_no_score = bool(score) and score[0].is_partial
    is_empty = has_no_score or may_be_empty([_conjunct(found, analysis)], visible)
    return finish(node, table=table, raises=raises, may_be_empty=is_empty)


@_analyse.register
def _(op: ops.Both, node: Node, analysis: _Analysis) -> FiniteNode:
    conjuncts = [_conjunct(part, analysis) for part in analysis.inputs(node)]
    return finish(node, may_be_empty=may_be_empty(conjuncts, analysis.space.visible))


def _argument_codes(source: FiniteNode, takes_none: bool) -> range:
    return range(len(source.values) + (takes_none and source.is_partial))


def _conjunct(match: FiniteNode, analysis: _Analysis) -> Conjunct:
    """A predicate as the question whether it may be empty sees it."""
    keys, queries = analysis.inputs(match)[:2]
    positions = None
    if keys.by_layout is not None and queries.by_layout is not None:
        positions = keys.by_layout, queries.by_layout
    occur = tuple(slice(len(source.values) + source.is_partial) for source in (keys, queries))
    assert match.table is not None
    return Conjunct(match.table, match.table[occur], match.inputs[0] == match.inputs[1], positions)


def _selected_by_layout(selector: FiniteNode, analysis: _Analysis) -> np.ndarray | None:
    """What is selected, `[length - 1, query, key]`, where that follows from the length alone."""
    parts = analysis.inputs(selector) if isinstance(selector.op, ops.Both) else [selector]
    n = analysis.space.max_len
    selected = analysis.space.visible[None] & analysis.exists[:, None, :] & analysis.exists[:, :, None]
    for part in parts:
        keys, queries = analysis.inputs(part)[:2]
        assert part.table is not None
        if part.table[: len(keys.values), : len(queries.values)].all() and not (
            keys.is_partial or queries.is_partial
        ):
            continue
        if isinstance(part.op, ops.MatchBest) or keys.by_layout is None or queries.by_layout is None:
            return None
        selected = selected & part.table[keys.by_layout[:, None, :], queries.by_layout[:, :, None]]
    return np.broadcast_to(selected, (n, n, n))


def _check_combinations(node: Node, inputs: Sequence[FiniteNode]) -> None:
    if math.prod(len(source.values) for source in inputs) > MAX_COMBINATIONS:
        sizes = " and ".join(f"{len(source.values):,}" for source in inputs)
        raise CompileError(
            f"{node.name!r} combines variables of {sizes} values: more than {MAX_COMBINATIONS:,} pairs. "
            "Reduce the vocabulary or max_len, or round the values.",
            node.expr,
        )


def _check_order(node: Node, score: FiniteNode) -> None:
    try:
        has_nan = any(value != value for value in score.values)
        sorted(score.values)
    except TypeError as error:
        raise CompileError(f"The scores of {node.name!r} cannot be put in order: {error}.", node.expr) from None
    if has_nan:
        raise CompileError(f"The score of {node.name!r} can be nan, which is neither high nor low.", node.expr)


def _call(node: Node, function: Callable[..., Value], variants: Sequence[Sequence[Value]]) -> Value:
    """A function's value.

    Raises:
        CompileError: If it is no value of RASP, or depends on what is lost in rounding.
        Exception: Whatever the function raises.
    """
    first, *others = [plain(function(*arguments)) for arguments in itertools.product(*variants)]
    _check_value(node, first)
    if any(value_key(other) != value_key(first) for other in others):
        numbers = next(variant for variant in variants if len(variant) > 1)
        raise CompileError(
            f"{node.name!r} tells {numbers[0]!r} and {numbers[1]!r} apart, which are one number but for rounding. "
            "Round it first.",
            node.expr,
        )
    return first


def _check_value(node: Node, value: Value) -> None:
    parts: Iterator[Value] = iter(value) if isinstance(value, tuple) else iter((value,))
    for part in parts:
        if isinstance(part, tuple):
            _check_value(node, part)
        elif part is not None and not isinstance(part, bool | int | float | str):
            raise CompileError(
                f"The function of {node.name!r} returned {value!r}, of type {type(value).__name__}; "
                "values are None, bool, int, float, str or tuples of those.",
                node.expr,
            )


def coder(node: Node, domain: Domain) -> Callable[[Value], int]:
    """The code of a value of the domain; of the nearest number, up to rounding."""
    if node.encoding is Encoding.NUMERICAL:
        numbers = np.array([float(value) for value in domain.values])
        return lambda value: int(np.abs(numbers - float(value)).argmin())
    codes = domain.codes()
    return lambda value: codes[value_key(value)]


def _means(node: Node, values: Sequence[Value], most: int) -> set[Fraction]:
    """Every mean of 1 to `most` of the numbers.

    Raises:
        CompileError: If there are too many.
    """
    numbers = {exact(value) for value in values}
    unit = math.lcm(*(number.denominator for number in numbers))
    steps = np.array(sorted(int(number * unit) for number in numbers), dtype=object)
    means: set[Fraction] = set()
    sums = np.zeros(1, dtype=object)
    for count in range(1, most + 1):
        if len(sums) * len(steps) > MAX_COMBINATIONS:
            raise CompileError(
                f"{node.name!r} averages up to {most} of {len(steps):,} numbers: too many means to list. "
                "Reduce the vocabulary or max_len, or round the values.",
                node.expr,
            )
        sums = np.unique(sums[:, None] + steps[None, :])
        means.update(Fraction(int(total), count * unit) for total in sums)
        if len(means) > MAX_VALUES:
            break  # `make_domain` refuses them by name
    return means
