"""Which values every variable can take, and every function and predicate as a table over them.

The values are a superset of those that occur: inputs are combined as if they were independent, except
for variables that follow from the length and the position alone, which are known exactly. From here on
a program is finite, and its Python functions are not called again.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import (
    MAX_VALUES,
    UNDEFINED,
    Finite,
    FiniteNode,
    coder,
    finish,
    held_number,
    make_domain,
)
from rasplens.compile.analysis.empty_selection import Conjunct, may_be_empty, some_position_sees_nothing
from rasplens.compile.errors import CompileError
from rasplens.compile.ir import Graph, Node
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import exact, plain, value_key

MAX_COMBINATIONS = 2_000_000
"""The most combinations of values that an operation of two variables, or a selector, may meet."""


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
        {factor * exact(held_number(source, value)) for value in source.raw_values}
        for factor, source in zip(factors, (fst, snd), strict=True)
    ]
    sums = {x + y for x in terms[0] for y in terms[1]}
    return finish(node, domain=make_domain(node, sums, fst.is_partial or snd.is_partial))


def _factor(node: Node, factor: Any) -> Fraction:
    factor = plain(factor)
    if not isinstance(factor, int | float | Fraction) or not math.isfinite(factor):
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
        reached = _means(node, [held_number(node, value) for value in source.raw_values], analysis.widest)
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
