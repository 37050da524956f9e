"""Which values every variable can take, and every function and predicate as a table over them.

The values are a superset of those that occur: inputs are combined as if they were independent, except
for variables that follow from the length and the position alone, which are known exactly, and for large tables
where the inputs are few enough to be run. From here on a program is finite, and its Python functions are not
called again.
"""

import contextlib
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
from rasplens.compile.analysis.domains import coder, held_number, make_domain
from rasplens.compile.analysis.empty_selection import Conjunct, may_be_empty, some_position_sees_nothing
from rasplens.compile.errors import CompileError
from rasplens.compile.ir import (
    UNDEFINED,
    AggregateNode,
    BestMatchNode,
    BestNode,
    BosAttentionNode,
    ConjunctionNode,
    Domain,
    FiniteGraph,
    FiniteNode,
    Graph,
    IndicesNode,
    LinearNode,
    LookupNode,
    LoweredSelector,
    LoweredVariable,
    Node,
    PredicateNode,
    SelectBestNode,
    SelectorNode,
    TokensNode,
    VariableNode,
    WhereNode,
    predicates_at,
    selector_at,
    variable_at,
)
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.rasp import Encoding, Predicate, Value
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import exact, is_exact, is_value, plain, value_key

MANY = 10_000
"""An operation of more pairs of values than this is looked at on the inputs themselves, where they are few."""


def reachable_values(graph: Graph, inputs: InputSpace, limits: CompileLimits = DEFAULT_LIMITS) -> FiniteGraph:
    """The graph with the values and tables of every node.

    Raises:
        CompileError: If a variable takes too many values, is never defined, is to be held as a number
            without being one, or if a function is not the same at every call.
        PrecisionError: If a number is larger than the weights can hold.
    """
    nodes: list[FiniteNode] = []
    for node in graph.nodes:
        nodes.append(_analyse(node.op, node, _Analysis(inputs, limits, nodes)))
    names = {node.name: i for i, node in enumerate(nodes) if isinstance(node, VariableNode)}
    return FiniteGraph(tuple(nodes), graph.output, names)


@dataclass(frozen=True, eq=False)
class _Analysis:
    """What has been found before a node."""

    space: InputSpace
    limits: CompileLimits
    nodes: list[FiniteNode]

    def variables(self, ids: Sequence[int]) -> list[VariableNode]:
        """The variables with some ids."""
        return [variable_at(self.nodes, i) for i in ids]

    def selector(self, i: int) -> SelectorNode:
        """The selector with an id."""
        return selector_at(self.nodes, i)

    def domain(self, node: LoweredVariable, values: Iterable[Value], is_partial: bool) -> Domain:
        """The domain of some values, within the limits."""
        return make_domain(node, values, is_partial, self.limits.max_values)

    @property
    def widest(self) -> int:
        """The most keys that a position sees."""
        return int(self.space.visible.sum(axis=1).max())

    @property
    def exists(self) -> np.ndarray:
        """Boolean `[length - 1, position]`: whether sequences of a length have a position."""
        return np.tri(self.space.max_len, dtype=bool)


def _facts(node: LoweredVariable) -> tuple[tuple[int, ...], str, rasp.RASPExpr, Encoding]:
    """What a finite variable has in common with the lowered one."""
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
    _check_combinations(node, inputs, analysis.limits)
    sizes = [len(source.values) + 1 for source in inputs]
    met = _met(node, inputs, sizes, analysis)
    if not op.takes_none:
        for axis in range(len(sizes)):
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
    can_fail = len(values) < len(results) or (not op.takes_none and any(source.is_partial for source in inputs))
    domain = analysis.domain(node, values, can_fail)
    code_of = coder(node, domain)
    table = np.full(sizes, UNDEFINED)
    table[np.nonzero(met)] = [UNDEFINED if result is None else code_of(result) for result in results.values()]
    by_layout = _table_by_layout(table, inputs, analysis)
    return LookupNode(*_facts(node), domain, table, met, raises, by_layout=by_layout)


def _met(
    node: LoweredVariable, inputs: Sequence[VariableNode], sizes: Sequence[int], analysis: _Analysis
) -> np.ndarray:
    """Which combinations of inputs can meet, as far as that is known without running the program."""
    by_layout = _known_by_layout(inputs)
    if by_layout is not None:
        met = np.zeros(sizes, dtype=bool)
        met[tuple(codes[analysis.exists] for codes in by_layout)] = True
        return met
    met = np.ones(sizes, dtype=bool)
    for axis, source in enumerate(inputs):
        if not source.is_partial:
            met[(slice(None),) * axis + (UNDEFINED,)] = False
    if len(node.inputs) == 2 and node.inputs[0] == node.inputs[1]:
        met &= np.eye(sizes[0], dtype=bool)
    pair, few_inputs = _function_of_two(node), analysis.space.size <= analysis.limits.executed_inputs
    if pair is not None and few_inputs and met.sum() > MANY:
        with contextlib.suppress(KeyError):  # a value that is found later, such as an average of classes
            return _occurring(pair, inputs, sizes, analysis.space)
    return met


def _function_of_two(node: LoweredVariable) -> rasp.SequenceMap | None:
    """The expression of a node that is the very function of two s-ops."""
    if not (isinstance(node.expr, rasp.SequenceMap) and isinstance(node.op, ir.Apply)):
        return None
    return node.expr if node.op.function is node.expr.f and len(node.inputs) == 2 else None


def _occurring(
    expr: rasp.SequenceMap, inputs: Sequence[VariableNode], sizes: Sequence[int], space: InputSpace
) -> np.ndarray:
    """Which pairs of two s-ops occur on the inputs of a small space, where both are defined."""
    pairs = BatchInterpreter(rasp.SequenceMap(lambda x, y: (x, y), expr.fst, expr.snd), space.vocab, space.visible)
    for ids in space.all_ids():
        pairs(ids)
    codes = [coder(source, source.domain) for source in inputs]
    met = np.zeros(sizes, dtype=bool)
    for pair in pairs.values[1:]:
        met[tuple(code(value) for code, value in zip(codes, pair, strict=True))] = True
    return met


def _table_by_layout(table: np.ndarray, inputs: Sequence[VariableNode], analysis: _Analysis) -> np.ndarray | None:
    by_layout = _known_by_layout(inputs)
    return None if by_layout is None else np.where(analysis.exists, table[tuple(by_layout)], UNDEFINED)


def _known_by_layout(variables: Sequence[VariableNode]) -> list[np.ndarray] | None:
    """The codes of variables by length and position; None if one of them depends on anything else."""
    known = [variable.by_layout for variable in variables if variable.by_layout is not None]
    return known if len(known) == len(variables) else None


@_analyse.register
def _(op: ir.Linear, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    fst, snd = analysis.variables(node.inputs)
    factors = [_factor(node, factor) for factor in (op.fst_fac, op.snd_fac)]
    if fst is snd:
        sums = {sum(factors) * exact(held_number(fst, value)) for value in fst.values}
        domain = analysis.domain(node, sums, fst.is_partial)
        return LinearNode(*_facts(node), domain, op.fst_fac, op.snd_fac)
    _check_combinations(node, (fst, snd), analysis.limits)
    terms = [
        {factor * exact(held_number(source, value)) for value in source.values}
        for factor, source in zip(factors, (fst, snd), strict=True)
    ]
    sums = {x + y for x in terms[0] for y in terms[1]}
    domain = analysis.domain(node, sums, fst.is_partial or snd.is_partial)
    return LinearNode(*_facts(node), domain, op.fst_fac, op.snd_fac)


def _factor(node: LoweredVariable, factor: Any) -> Fraction:
    factor = plain(factor)
    if not isinstance(factor, int | float | Fraction) or not math.isfinite(factor):
        raise CompileError(f"A factor of {node.name!r} is {factor!r}; it must be a finite number.", node.expr)
    return exact(factor)


@_analyse.register
def _(op: ir.Where, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    condition, then, otherwise = node.inputs
    truths = {bool(value) for value in analysis.variables([condition])[0].values}
    if len(truths) == 1:  # what is never chosen is not read: it may be anything
        then = otherwise = then if truths == {True} else otherwise
    node = replace(node, inputs=(condition, then, otherwise))
    branches = analysis.variables([then, otherwise])
    values = itertools.chain.from_iterable(branch.values for branch in branches)
    is_partial = any(source.is_partial for source in analysis.variables(node.inputs))
    return WhereNode(*_facts(node), analysis.domain(node, values, is_partial))


@_analyse.register
def _(op: ir.Aggregate, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    selector, (source,) = analysis.selector(node.inputs[0]), analysis.variables(node.inputs[1:])
    reached: Iterable[Value] = source.values
    if node.encoding is Encoding.NUMERICAL:
        reached = _means(node, [held_number(node, value) for value in source.values], analysis)
    is_silent = selector.may_be_empty or some_position_sees_nothing(analysis.space.visible)
    fallbacks = (op.default,) if is_silent else ()
    defaults = [value for value in fallbacks if value is not None]
    domain = analysis.domain(node, itertools.chain(reached, defaults), source.is_partial or None in fallbacks)
    return AggregateNode(*_facts(node), domain, fallbacks)


@_analyse.register
def _(op: ir.BosAttention, node: LoweredVariable, analysis: _Analysis) -> FiniteNode:
    selector = analysis.selector(node.inputs[0])
    visible = analysis.space.visible
    if op.of_length and not visible.all():
        raise CompileError(
            "`length` is the length of the whole sequence, which not every position sees here. Count what is "
            "seen instead: SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).",
            node.expr,
        )
    widths = _widths_by_layout(node.inputs[0], analysis)
    if widths is None:
        least = 0 if selector.may_be_empty or some_position_sees_nothing(visible) else 1
        shares = [Fraction(1, 1 + width) for width in range(least, analysis.widest + 1)]
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
    return _predicate(PredicateNode(node.inputs, node.name, node.expr, True, table, raises), analysis)


@_analyse.register
def _(op: ir.SelectBest, node: LoweredSelector, analysis: _Analysis) -> FiniteNode:
    table, raises = _predicate_table(op.predicate, False, node, analysis)
    (score,) = analysis.variables(node.inputs[2:])
    _in_order(node, score.values)
    found = SelectBestNode(node.inputs, node.name, node.expr, True, table, raises)
    return found if score.is_partial else _predicate(found, analysis)


@_analyse.register
def _(op: ir.SelectBestMatch, node: LoweredSelector, analysis: _Analysis) -> FiniteNode:
    holds, raises = _predicate_table(op.predicate, False, node, analysis)
    places, scoring_raises = _score_places(op.score, holds, node, analysis)
    raises = {**raises, **scoring_raises}
    return _predicate(BestMatchNode(node.inputs, node.name, node.expr, True, places, raises), analysis)


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
    predicates = [part for i in node.inputs for part in predicates_at(analysis.nodes, i)]
    conjuncts = [_conjunct(part, analysis) for part in predicates]
    is_empty = may_be_empty(conjuncts, analysis.space.visible)
    return ConjunctionNode(node.inputs, node.name, node.expr, is_empty)


def _predicate(node: PredicateNode, analysis: _Analysis) -> PredicateNode:
    """The predicate with what is known of whether it may select nothing."""
    return replace(node, may_be_empty=may_be_empty([_conjunct(node, analysis)], analysis.space.visible))


def _predicate_table(
    predicate: Predicate, takes_none: bool, node: LoweredSelector, analysis: _Analysis
) -> tuple[np.ndarray, dict[tuple[int, ...], Exception]]:
    """A predicate's table, and where it raises what."""
    keys, queries = analysis.variables(node.inputs[:2])
    _check_combinations(node, (keys, queries), analysis.limits)
    table = np.zeros((len(keys.values) + 1, len(queries.values) + 1), dtype=bool)
    if isinstance(predicate, rasp.Comparison) and all(map(is_exact, (*keys.values, *queries.values))):
        key, query = (np.array(source.values, dtype=float) for source in (keys, queries))
        table[:-1, :-1] = predicate(key[:, None], query[None, :])
        return table, {}
    raises: dict[tuple[int, ...], Exception] = {}

    def holds(key: Value, query: Value) -> bool:
        return bool(predicate(key, query))

    for at in itertools.product(*(_argument_codes(source, takes_none) for source in (keys, queries))):
        try:
            table[at] = _call(node, holds, keys.domain.value(at[0]), queries.domain.value(at[1]))
        except CompileError:
            raise
        except Exception as error:
            raises[at] = error
    if raises and len(raises) == len(keys.values) * len(queries.values):
        failure = next(iter(raises.values()))
        raise CompileError(
            f"The predicate of {node.name!r} always fails: {type(failure).__name__}: {failure}.", node.expr
        )
    return table, raises


def _argument_codes(source: VariableNode, takes_none: bool) -> range:
    return range(len(source.values) + (takes_none and source.is_partial))


def _conjunct(predicate: PredicateNode, analysis: _Analysis) -> Conjunct:
    """A predicate as the question whether it may be empty sees it."""
    keys, queries = analysis.variables(predicate.inputs[:2])
    positions = None
    if keys.by_layout is not None and queries.by_layout is not None:
        positions = keys.by_layout, queries.by_layout
    occur = tuple(slice(len(source.values) + source.is_partial) for source in (keys, queries))
    is_same = predicate.keys == predicate.queries
    holds = predicate.table.astype(bool)
    return Conjunct(holds, holds[occur], is_same, positions)


def _widths_by_layout(selector: int, analysis: _Analysis) -> np.ndarray | None:
    """How many keys are selected, `[length - 1, query]`, where that follows from the length alone."""
    visible, tables = analysis.space.visible, []
    for part in predicates_at(analysis.nodes, selector):
        keys, queries = analysis.variables(part.inputs[:2])
        if part.table[: len(keys.values), : len(queries.values)].all() and not (
            keys.is_partial or queries.is_partial
        ):
            continue
        if isinstance(part, BestNode) or keys.by_layout is None or queries.by_layout is None:
            return None
        tables.append((part.table, keys.by_layout, queries.by_layout))
    if not tables:
        return np.cumsum(visible, axis=1).T
    widths = np.zeros(visible.shape, dtype=int)
    for n in range(1, len(visible) + 1):
        selected = visible[:n, :n]
        for table, of_keys, of_queries in tables:
            selected = selected & table[of_keys[n - 1, None, :n], of_queries[n - 1, :n, None]]
        widths[n - 1, :n] = selected.sum(axis=1)
    return widths


def _check_combinations(node: Node, inputs: Sequence[VariableNode], limits: CompileLimits) -> None:
    if math.prod(len(source.values) for source in inputs) > limits.max_combinations:
        sizes = " and ".join(f"{len(source.values):,}" for source in inputs)
        raise CompileError(
            f"{node.name!r} combines variables of {sizes} values: more than {limits.max_combinations:,} pairs. "
            "Reduce the vocabulary or max_len, round the values, or raise max_combinations of CompileLimits.",
            node.expr,
        )


def _in_order(node: Node, scores: Iterable[Value]) -> list[Value]:
    try:
        return sorted(scores)
    except TypeError as error:
        raise CompileError(f"The scores of {node.name!r} cannot be put in order: {error}.", node.expr) from None


def _call(node: Node, function: Callable[..., Value], *arguments: Value) -> Value:
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


def _check_value(node: Node, value: Value) -> None:
    if value is not None and not is_value(value):
        raise CompileError(
            f"The function of {node.name!r} returned {value!r}, of type {type(value).__name__}; values are None, "
            "bool, int, float but nan, str or tuples of those.",
            node.expr,
        )


def _means(node: Node, values: Sequence[Value], analysis: _Analysis) -> set[Fraction]:
    """Every mean of as many of the numbers as a position may see.

    Raises:
        CompileError: If there are too many.
    """
    most, limits = analysis.widest, analysis.limits
    numbers = {exact(value) for value in values}
    unit = math.lcm(*(number.denominator for number in numbers))
    steps = np.array(sorted(int(number * unit) for number in numbers), dtype=object)
    means: set[Fraction] = set()
    sums = np.zeros(1, dtype=object)
    for count in range(1, most + 1):
        if len(sums) * len(steps) > limits.max_combinations:
            raise CompileError(
                f"{node.name!r} averages up to {most} of {len(steps):,} numbers: too many means to list. "
                "Reduce the vocabulary or max_len, or round the values.",
                node.expr,
            )
        sums = np.unique(sums[:, None] + steps[None, :])
        means.update(Fraction(int(total), count * unit) for total in sums)
        if len(means) > limits.max_values:
            break  # `make_domain` refuses them by name
    return means
