"""Which values every variable can take, and every function and predicate as a table over them.

Which values meet is asked of `IndependentValues`, from the tables alone, or of `ObservedValues`, on inputs that
are run. From here on a program is finite, and its Python functions are not called again.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from operator import getitem
from typing import Any

import numpy as np

from rasplens.compile import ir, rasp
from rasplens.compile.analysis.domains import (
    Averaged,
    NotANumberError,
    ReadsNumbersError,
    ValuesError,
    coder,
    held_number,
    make_domain,
)
from rasplens.compile.analysis.empty_selection import some_position_sees_nothing
from rasplens.compile.analysis.independent_values import IndependentValues, known_by_layout
from rasplens.compile.analysis.observed_values import ObservedValues
from rasplens.compile.analysis.possible_codes import Possible
from rasplens.compile.analysis.selection_size import widths_by_layout
from rasplens.compile.errors import CompileError
from rasplens.compile.ir import (
    UNDEFINED,
    AggregateNode,
    BestMatchNode,
    BosAttentionNode,
    ConjunctionNode,
    Domain,
    FiniteGraph,
    FiniteNode,
    Graph,
    GraphNode,
    IndicesNode,
    LinearNode,
    LookupNode,
    LoweredSelector,
    LoweredVariable,
    PredicateNode,
    SelectBestNode,
    SelectorNode,
    TokensNode,
    VariableNode,
    WhereNode,
    selector_at,
    variable_at,
)
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.rasp import Encoding, Predicate, Value
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import exact, is_exact, is_real, is_value, plain, value_key

NEVER: Value = 0
"""The placeholder value of a variable that is never defined: a domain has at least one value."""


def reachable_values(
    graph: Graph, inputs: InputSpace, limits: CompileLimits = DEFAULT_LIMITS, is_run: bool = False
) -> FiniteGraph:
    """The graph with the values and tables of every node.

    Args:
        graph: The operations.
        inputs: What the program is given.
        limits: How much to enumerate.
        is_run: Whether to run the inputs and to list what occurs; else a superset of it, from the tables alone.

    Raises:
        CompileError: If a variable takes too many values, is never defined, is to be held as a number
            without being one, or if a function is not the same at every call.
        PrecisionError: If a number is larger than the weights can hold.
        ReadsNumbersError: If a number reads what can be none, but never is where it is read.
    """
    nodes: list[FiniteNode] = []
    meeting = ObservedValues.of(inputs, limits, nodes) if is_run else IndependentValues(inputs, limits, nodes)
    analysis = _Analysis(inputs, limits, graph.output, nodes, meeting)
    for i, lowered in enumerate(graph.nodes):
        nodes.append(_analyse(lowered.op, lowered, analysis))
        meeting.add(i)
        node = nodes[i]
        if isinstance(node, SelectorNode):
            nodes[i] = replace(node, may_be_empty=meeting.may_be_empty(i))
    names = {node.name: i for i, node in enumerate(nodes) if isinstance(node, VariableNode)}
    return FiniteGraph(tuple(nodes), graph.output, names)


def values_read(
    finite: FiniteGraph, reads: Sequence[tuple[int, int]], inputs: InputSpace, limits: CompileLimits, is_run: bool
) -> list[Averaged]:
    """Return what selectors read of variables in a whole graph: for each, its values and those that are selected.

    Args:
        finite: The graph.
        reads: The ids of selectors and variables.
        inputs: As for `reachable_values`.
        limits: As for `reachable_values`.
        is_run: As for `reachable_values`.
    """
    nodes: list[FiniteNode] = []
    meeting = ObservedValues.of(inputs, limits, nodes) if is_run else IndependentValues(inputs, limits, nodes)
    for i, node in enumerate(finite.nodes):
        nodes.append(node)
        meeting.add(i)
    values = [finite.variable(source).values for _, source in reads]
    return [
        Averaged(known, tuple(itertools.compress(known, meeting.selected(*read))))
        for known, read in zip(values, reads, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Analysis:
    """The state of an analysis: the nodes so far, and which values meet."""

    space: InputSpace
    limits: CompileLimits
    output: int
    nodes: list[FiniteNode]
    meeting: IndependentValues | ObservedValues

    def variables(self, ids: Sequence[int]) -> list[VariableNode]:
        """The variables with some ids."""
        return [variable_at(self.nodes, i) for i in ids]

    def selector(self, i: int) -> SelectorNode:
        """The selector with an id."""
        return selector_at(self.nodes, i)

    def domain(self, node: LoweredVariable, values: Iterable[Value], is_partial: bool) -> Domain:
        """The domain of some values, within the limits; of none `NEVER`, unless it is that of the result."""
        values = list(values)
        if not values and len(self.nodes) != self.output:
            return Domain((NEVER,), is_partial=True)
        return make_domain(node, values, is_partial, self.limits.max_values)

    @property
    def exists(self) -> np.ndarray:
        """Boolean `[length - 1, position]`: whether sequences of a length have a position."""
        return np.tri(self.space.max_len, dtype=bool)


def _facts(node: LoweredVariable) -> tuple[tuple[int, ...], str, rasp.RASPExpr, Encoding]:
    """Return the fields that a finite variable shares with the lowered one."""
    return node.inputs, node.name, node.expr, node.encoding


@singledispatch
def _analyse(op: object, node: Any, analysis: _Analysis) -> FiniteNode:
    raise AssertionError(f"no analysis of {op}")


@_analyse.register
def _(op: ir.Tokens, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    return TokensNode(*_facts(node), analysis.domain(node, analysis.space.vocab, is_partial=False))


@_analyse.register
def _(op: ir.Indices, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    n = analysis.space.max_len
    codes = np.where(analysis.exists, np.arange(n), UNDEFINED)
    return IndicesNode(*_facts(node), analysis.domain(node, range(n), is_partial=False), by_layout=codes)


@_analyse.register
def _(op: ir.Apply, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    inputs = analysis.variables(node.inputs)
    met = analysis.meeting.together(node)
    is_undefined = not op.takes_none and any(met.take(UNDEFINED, axis).any() for axis in range(met.ndim))
    if not op.takes_none:
        for axis in range(met.ndim):
            met[(slice(None),) * axis + (UNDEFINED,)] = False
    results: dict[tuple[int, ...], Value] = {}
    raises: dict[tuple[int, ...], Exception] = {}
    known = [(*source.values, None) for source in inputs]
    for at in zip(*(axis.tolist() for axis in np.nonzero(met)), strict=True):
        try:
            results[at] = _call(node, op.function, *map(getitem, known, at))
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
    domain = analysis.domain(node, values, len(values) < len(results) or is_undefined)
    code_of = coder(node, domain)
    table = np.full(met.shape, UNDEFINED)
    table[np.nonzero(met)] = [UNDEFINED if result is None else code_of(result) for result in results.values()]
    by_layout = _table_by_layout(table, inputs, analysis)
    return LookupNode(*_facts(node), domain, table, met, raises, by_layout=by_layout)


def _table_by_layout(table: np.ndarray, inputs: Sequence[VariableNode], analysis: _Analysis) -> np.ndarray | None:
    by_layout = known_by_layout(inputs)
    return None if by_layout is None else np.where(analysis.exists, table[tuple(by_layout)], UNDEFINED)


@_analyse.register
def _(op: ir.Linear, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    fst, snd = analysis.variables(node.inputs)
    fst_fac, snd_fac = (_factor(node, factor) for factor in (op.fst_fac, op.snd_fac))
    met = analysis.meeting.together(node)
    for axis, source in enumerate((fst, snd)):
        for value in itertools.compress(source.values, np.asarray(met[:-1, :-1].any(axis=1 - axis))):
            if not is_real(value):
                message = (
                    f"{node.name!r} adds up numbers, but {source.name!r} can be {value!r}. Map it to a number."
                )
                raise NotANumberError(message, node, value)
    _check_sources(node, (fst, snd))
    terms = [
        [factor * exact(held_number(source, value)) for value in source.values]
        for source, factor in ((fst, fst_fac), (snd, snd_fac))
    ]
    if met[:-1, :-1].all():
        sums = {x + y for x in set(terms[0]) for y in set(terms[1])}
    else:
        sums = {terms[0][x] + terms[1][y] for x, y in np.argwhere(met[:-1, :-1]).tolist()}
    domain = analysis.domain(node, sums, bool(met[-1].any() or met[:, -1].any()))
    return LinearNode(*_facts(node), domain, op.fst_fac, op.snd_fac)


def _check_sources(node: LoweredVariable, sources: Sequence[VariableNode]) -> None:
    """Looks whether all that a number is made of are numbers, once it is known that what is read of it is.

    Raises:
        ReadsNumbersError: If something is none, which is not read.
    """
    values = tuple(value for source in sources for value in source.values)
    if not all(map(is_real, values)):
        raise ReadsNumbersError(node, Averaged(values, tuple(filter(is_real, values))))


def _factor(node: LoweredVariable, factor: Any) -> Fraction:
    factor = plain(factor)
    if not isinstance(factor, int | float | Fraction) or not math.isfinite(factor):
        raise CompileError(f"A factor of {node.name!r} is {factor!r}; it must be a finite number.", node.expr)
    return exact(factor)


@_analyse.register
def _(op: ir.Where, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    condition, then, otherwise = node.inputs
    truths = [bool(value) for value in analysis.variables([condition])[0].values]
    if len(set(truths)) == 1:  # what is never chosen is not read: it may be anything
        then = otherwise = then if truths[0] else otherwise
    node = replace(node, inputs=(condition, then, otherwise))
    branches = analysis.variables([then, otherwise])
    chosen = analysis.meeting.chosen(node, np.array([*truths, False]))
    taken = [list(itertools.compress(branch.values, may)) for branch, may in zip(branches, chosen, strict=True)]
    if node.is_numerical:
        for value in itertools.chain.from_iterable(taken):
            held_number(node, value)
        _check_sources(node, branches)
    known = {value_key(value) for values in taken for value in values}
    reached = [value for branch in branches for value in branch.values if value_key(value) in known]
    is_partial = analysis.variables([condition])[0].is_partial or any(bool(may[-1]) for may in chosen)
    return WhereNode(*_facts(node), analysis.domain(node, reached, is_partial))


@_analyse.register
def _(op: ir.Aggregate, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    selector, (source,) = node.inputs[0], analysis.variables(node.inputs[1:])
    selected = analysis.meeting.selected(selector, node.inputs[1])
    may_be_empty = analysis.selector(selector).may_be_empty
    is_silent = may_be_empty or some_position_sees_nothing(analysis.space.visible)
    fallbacks = (op.default,) if is_silent else ()
    reached: list[Value] = [value for value in fallbacks if value is not None]
    if node.is_numerical:
        reached += analysis.meeting.means(node, _averaged(node, source, selected, analysis))
    else:
        known = {value_key(value) for value in (*reached, *itertools.compress(source.values, selected))}
        reached = [value for value in (*source.values, *reached) if value_key(value) in known]
    domain = analysis.domain(node, reached, bool(selected[-1]) or None in fallbacks)
    return AggregateNode(*_facts(node), domain, fallbacks)


def _averaged(
    node: LoweredVariable, source: VariableNode, selected: Possible, analysis: _Analysis
) -> list[Value | None]:
    """By code of what an aggregate averages, the number; None of what is never selected.

    Raises:
        NotANumberError: If what is selected alone, and so the mean itself, is no number.
        ReadsNumbersError: If something that is selected or not is no number.
    """
    alone = analysis.meeting.selected_alone(*node.inputs)
    for value in itertools.compress(source.values, alone):
        held_number(node, value)
    if not all(map(is_real, source.values)):
        read = tuple(itertools.compress(source.values, selected))
        raise ReadsNumbersError(node, Averaged(source.values, read))
    return [
        held_number(node, value) if is_read else None
        for value, is_read in zip(source.values, selected[:-1], strict=True)
    ]


@_analyse.register
def _(op: ir.BosAttention, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    selector = analysis.selector(node.inputs[0])
    visible = analysis.space.visible
    if op.of_length and not visible.all():
        raise CompileError(
            "`length` counts the whole sequence, but some positions do not see all of it. Count the visible "
            "positions instead: SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).",
            node.expr,
        )
    widths = widths_by_layout(analysis.nodes, node.inputs[0], visible)
    if widths is None:
        may_be_empty = selector.may_be_empty or some_position_sees_nothing(visible)
        shares = [Fraction(1, 1 + width) for width in analysis.meeting.widths(node.inputs[0], may_be_empty)]
        return BosAttentionNode(*_facts(node), analysis.domain(node, shares, is_partial=False), (1.0,))
    occurring, place = np.unique(widths[analysis.exists], return_inverse=True)
    shares = [Fraction(1, 1 + int(width)) for width in occurring]
    domain = analysis.domain(node, shares, False)
    code_of = coder(node, domain)
    by_layout = np.full(widths.shape, UNDEFINED)
    by_layout[analysis.exists] = np.array([code_of(share) for share in shares])[place.ravel()]
    return BosAttentionNode(*_facts(node), domain, (1.0,), by_layout=by_layout)


@_analyse.register
def _(op: ir.Select, node: LoweredSelector, analysis: _Analysis) -> FiniteNode:
    table, raises = _predicate_table(op.predicate, op.takes_none, node, analysis)
    return PredicateNode(node.inputs, node.name, node.expr, True, table, raises)


@_analyse.register
def _(op: ir.SelectBest, node: LoweredSelector, analysis: _Analysis) -> FiniteNode:
    table, raises = _predicate_table(op.predicate, False, node, analysis)
    (score,) = analysis.variables(node.inputs[2:])
    _in_order(node, score.values)
    return SelectBestNode(node.inputs, node.name, node.expr, True, table, raises)


@_analyse.register
def _(op: ir.SelectBestMatch, node: LoweredSelector, analysis: _Analysis) -> FiniteNode:
    holds, raises = _predicate_table(op.predicate, False, node, analysis)
    places, scoring_raises = _score_places(op.score, holds, node, analysis)
    raises = {**raises, **scoring_raises}
    return BestMatchNode(node.inputs, node.name, node.expr, True, places, raises)


def _score_places(
    score: Callable[[Value, Value], Value], holds: np.ndarray, node: LoweredSelector, analysis: _Analysis
) -> tuple[np.ndarray, dict[tuple[int, ...], Exception]]:
    """The place of each key's score among those for a query, from 1, 0 where it has none; and where it raises."""
    keys, queries = analysis.variables(node.inputs)
    places = np.zeros(holds.shape, dtype=int)
    raises: dict[tuple[int, ...], Exception] = {}
    for query, value in enumerate(queries.values):
        scores: dict[int, Value] = {}
        for key in np.flatnonzero(holds[:, query]).tolist():
            try:
                scores[key] = _call(node, score, keys.values[key], value)
            except CompileError:
                raise
            except Exception as error:
                raises[key, query] = error
        given = {key: found for key, found in scores.items() if found is not None}
        ascending = {found: place for place, found in enumerate(_in_order(node, set(given.values())), start=1)}
        places[list(given), query] = [ascending[found] for found in given.values()]
    if raises and len(raises) == holds.sum():
        failure = next(iter(raises.values()))
        raise CompileError(
            f"The score of {node.name!r} always fails: {type(failure).__name__}: {failure}.", node.expr
        )
    return places, raises


@_analyse.register
def _(op: ir.Conjunction, node: LoweredSelector, analysis: _Analysis) -> FiniteNode:
    return ConjunctionNode(node.inputs, node.name, node.expr, True)


def _predicate_table(
    predicate: Predicate, takes_none: bool, node: LoweredSelector, analysis: _Analysis
) -> tuple[np.ndarray, dict[tuple[int, ...], Exception]]:
    """A predicate's table, and where it raises what."""
    keys, queries = analysis.variables(node.inputs[:2])
    met = analysis.meeting.key_and_query(node)
    if not takes_none:
        met[-1], met[:, -1] = False, False
    table = np.zeros(met.shape, dtype=bool)
    if isinstance(predicate, rasp.Comparison) and all(map(is_exact, (*keys.values, *queries.values))):
        key, query = (np.array(source.values, dtype=float) for source in (keys, queries))
        table[:-1, :-1] = predicate(key[:, None], query[None, :])
        return table, {}
    raises: dict[tuple[int, ...], Exception] = {}

    def holds(key: Value, query: Value) -> bool:
        return bool(predicate(key, query))

    asked = [tuple(at) for at in np.argwhere(met).tolist()]
    for at in asked:
        try:
            table[at] = _call(node, holds, keys.domain.value(at[0]), queries.domain.value(at[1]))
        except CompileError:
            raise
        except Exception as error:
            raises[at] = error
    if raises and len(raises) == len(asked):
        failure = next(iter(raises.values()))
        raise CompileError(
            f"The predicate of {node.name!r} always fails: {type(failure).__name__}: {failure}.", node.expr
        )
    return table, raises


def _in_order(node: GraphNode, scores: Iterable[Value]) -> list[Value]:
    try:
        return sorted(scores)
    except TypeError as error:
        raise ValuesError(f"The scores of {node.name!r} cannot be put in order: {error}.", node.expr) from None


def _call(node: GraphNode, function: Callable[..., Value], *arguments: Value) -> Value:
    """A function's value.

    Raises:
        CompileError: If it is no value of RASP, or another one at the second call.
        Exception: Whatever the function raises.
    """
    value, again = plain(function(*arguments)), plain(function(*arguments))
    if type(value) is type(again) is int and value == again:  # what most functions give, in less time
        return value
    _check_value(node, value)
    if value_key(value) != value_key(again):
        raise CompileError(
            f"The function of {node.name!r} is not deterministic: on {', '.join(map(repr, arguments))} it "
            f"returned {value!r}, then {again!r}.",
            node.expr,
        )
    return value


def _check_value(node: GraphNode, value: Value) -> None:
    if value is not None and not is_value(value):
        raise CompileError(
            f"The function of {node.name!r} returned {value!r}, of type {type(value).__name__}; a value is None, "
            "a bool, int, float (not nan) or str, or a tuple of those.",
            node.expr,
        )
