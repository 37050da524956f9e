"""Which values every variable can take, and every function and predicate as a table over them.

The values are a superset of those that occur: inputs are combined as if they were independent. From
here on a program is finite, and its Python functions are not called again.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch

import numpy as np

from rasplens.compile import graph as ops
from rasplens.compile.emptiness import Conjunct, may_be_empty, some_position_sees_nothing
from rasplens.compile.equality import as_number, numbers_agree, plain, value_key
from rasplens.compile.errors import CompileError
from rasplens.compile.graph import Graph, Node
from rasplens.compile.inputs import InputSpace
from rasplens.compile.rasp import Encoding, Value

MAX_VALUES = 20_000
"""The most values that a variable may take."""

MAX_COMBINATIONS = 2_000_000
"""The most combinations of values that an operation of two variables, or a selector, may meet."""

UNDEFINED = -1
"""The code of None in tables: as an index it is the last place, which tables keep for it."""


@dataclass(frozen=True, eq=False)
class Domain:
    """What a variable can be.

    Attributes:
        values: Its values; a value's place is its code. Numbers held as such are in ascending order.
        is_partial: Whether it can also be undefined.
    """

    values: tuple[Value, ...]
    is_partial: bool

    def codes(self) -> dict[tuple, int]:
        """The code of each value, by `value_key`."""
        return {value_key(value): code for code, value in enumerate(self.values)}


@dataclass(frozen=True, eq=False)
class Finite:
    """A graph whose every node is finite.

    Attributes:
        graph: The operations.
        domains: By node id, for variables.
        tables: By node id: for `Apply`, result codes by input codes; for `Match` and `MatchBest`,
            booleans `[key code, query code]`.
        empty: Ids of selectors that may select nothing where a position sees something.
        fallbacks: By node id, what a variable is where its selector selects nothing, if that can be.
    """

    graph: Graph
    domains: dict[int, Domain]
    tables: dict[int, np.ndarray]
    empty: frozenset[int]
    fallbacks: dict[int, Value]


def reachable_values(graph: Graph, inputs: InputSpace) -> Finite:
    """The graph with the values and tables of every node.

    Raises:
        CompileError: If a variable takes too many values, is never defined, is to be held as a number
            without being one, or a negated selector can meet undefined keys or queries.
    """
    analysis = _Analysis(graph, inputs)
    for i, node in enumerate(graph.nodes):
        _analyse(node.op, i, node, analysis)
    return Finite(graph, analysis.domains, analysis.tables, frozenset(analysis.empty), analysis.fallbacks)


@dataclass(frozen=True, eq=False)
class _Analysis:
    """What has been found so far, filled in from the inputs on."""

    graph: Graph
    inputs: InputSpace
    domains: dict[int, Domain] = field(default_factory=dict)
    tables: dict[int, np.ndarray] = field(default_factory=dict)
    empty: set[int] = field(default_factory=set)
    fallbacks: dict[int, Value] = field(default_factory=dict)
    by_position: dict[int, np.ndarray] = field(default_factory=dict)

    def input_domains(self, node: Node) -> list[Domain]:
        """The domains of what a node reads, refused if their combinations are too many to list."""
        domains = [self.domains[i] for i in node.inputs]
        combinations = math.prod(len(domain.values) for domain in domains[:2])
        if combinations > MAX_COMBINATIONS and not isinstance(node.op, ops.Choose):
            sizes = " and ".join(f"{len(domain.values):,}" for domain in domains[:2])
            raise CompileError(
                f"{node.name!r} combines variables of {sizes} values: more than {MAX_COMBINATIONS:,} pairs. "
                "Reduce the vocabulary or max_len, or round the values.",
                node.expr,
            )
        return domains

    def conjunct(self, selector: int) -> Conjunct:
        """A predicate as the question whether it may be empty sees it."""
        keys, queries = self.graph.nodes[selector].inputs[:2]
        is_defined = not self.domains[keys].is_partial and not self.domains[queries].is_partial
        positions = None
        if keys in self.by_position and queries in self.by_position:
            positions = self.by_position[keys], self.by_position[queries]
        return Conjunct(self.tables[selector], is_defined, keys == queries, positions)

    def set_domain(self, i: int, values: Iterable[Value], is_partial: bool) -> Domain:
        """Records a variable's values, put in the order of its encoding."""
        node = self.graph.nodes[i]
        distinct = _distinct(node, values)
        if not distinct:
            raise CompileError(f"{node.name!r} is undefined whatever the input.", node.expr)
        self.domains[i] = Domain(tuple(distinct), is_partial)
        return self.domains[i]


def _distinct(node: Node, values: Iterable[Value]) -> list[Value]:
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
    if node.encoding is Encoding.NUMERICAL:
        return _merge_rounded(sorted(by_key.values()))
    return list(by_key.values())


def _merge_rounded(ascending: list[Value]) -> list[Value]:
    """The numbers without those that differ from the one before by rounding alone, such as 1/3 - 1."""
    return [value for i, value in enumerate(ascending) if i == 0 or not numbers_agree(value, ascending[i - 1])]


def _number(node: Node, value: Value) -> Value:
    if not isinstance(value, bool | int | float):
        raise CompileError(
            f"{node.name!r} is to be held as a number but can be {value!r}. Wrap it in categorical(...).",
            node.expr,
        )
    return as_number(value)


@singledispatch
def _analyse(op: object, i: int, node: Node, analysis: _Analysis) -> None:
    raise AssertionError(f"no analysis of {op}")


@_analyse.register
def _(op: ops.Tokens, i: int, node: Node, analysis: _Analysis) -> None:
    analysis.set_domain(i, analysis.inputs.vocab, is_partial=False)


@_analyse.register
def _(op: ops.Indices, i: int, node: Node, analysis: _Analysis) -> None:
    analysis.set_domain(i, range(analysis.inputs.max_len), is_partial=False)
    analysis.by_position[i] = np.arange(analysis.inputs.max_len)


@_analyse.register
def _(op: ops.Apply, i: int, node: Node, analysis: _Analysis) -> None:
    domains = analysis.input_domains(node)
    is_same = len(set(node.inputs)) < len(node.inputs)
    codes = itertools.product(*(range(len(domain.values)) for domain in domains))
    met = [combination for combination in codes if not is_same or len(set(combination)) == 1]
    results = [_call(op.function, [d.values[c] for d, c in zip(domains, at, strict=True)]) for at in met]
    _check_hashable(node, results)
    is_partial = any(domain.is_partial for domain in domains) or any(result is None for result in results)
    domain = analysis.set_domain(i, (result for result in results if result is not None), is_partial)
    code_of = _coder(node, domain)
    table = np.full([len(d.values) + 1 for d in domains], UNDEFINED)
    for combination, result in zip(met, results, strict=True):
        table[combination] = UNDEFINED if result is None else code_of(result)
    analysis.tables[i] = table
    if all(source in analysis.by_position for source in node.inputs):
        analysis.by_position[i] = table[tuple(analysis.by_position[source] for source in node.inputs)]


@_analyse.register
def _(op: ops.Linear, i: int, node: Node, analysis: _Analysis) -> None:
    fst, snd = analysis.input_domains(node)
    for source, domain in zip(node.inputs, (fst, snd), strict=True):
        for value in domain.values:
            _number(analysis.graph.nodes[source], value)
    sums = (op.fst_fac * x + op.snd_fac * y for x in fst.values for y in snd.values)
    analysis.set_domain(i, sums, fst.is_partial or snd.is_partial)


@_analyse.register
def _(op: ops.Choose, i: int, node: Node, analysis: _Analysis) -> None:
    condition, then, otherwise = analysis.input_domains(node)
    branches = [
        branch
        for branch, wanted in ((then, True), (otherwise, False))
        if any(bool(value) is wanted for value in condition.values)
    ]
    values = itertools.chain.from_iterable(branch.values for branch in branches)
    analysis.set_domain(i, values, condition.is_partial or any(branch.is_partial for branch in branches))


@_analyse.register
def _(op: ops.Gather, i: int, node: Node, analysis: _Analysis) -> None:
    selector, source = node.inputs
    values = analysis.domains[source]
    reached = list(values.values)
    if node.encoding is Encoding.NUMERICAL:
        reached = _means(
            [_number(node, value) for value in reached], int(analysis.inputs.visible.sum(axis=1).max())
        )
    if selector in analysis.empty or some_position_sees_nothing(analysis.inputs.visible):
        analysis.fallbacks[i] = op.default
    fallback = [analysis.fallbacks[i]] if i in analysis.fallbacks else []
    defaults = [value for value in fallback if value is not None]
    analysis.set_domain(i, reached + defaults, values.is_partial or None in fallback)


@_analyse.register
def _(op: ops.BosShare, i: int, node: Node, analysis: _Analysis) -> None:
    widest = int(analysis.inputs.visible.sum(axis=1).max())
    analysis.set_domain(i, (1 / (1 + width) for width in range(widest + 1)), is_partial=False)
    analysis.fallbacks[i] = 1.0


@_analyse.register(ops.Match)
@_analyse.register(ops.MatchBest)
def _(op: ops.Match | ops.MatchBest, i: int, node: Node, analysis: _Analysis) -> None:
    keys, queries, *score = analysis.input_domains(node)
    if isinstance(op, ops.Match) and op.is_total and (keys.is_partial or queries.is_partial):
        raise CompileError(
            f"{node.name!r} negates a selector whose keys or queries can be undefined; it would have to "
            "select those. Give them a value first, or negate inside the predicate.",
            node.expr,
        )
    rows = [[_call(op.predicate, (key, query)) for query in queries.values] for key in keys.values]
    table = np.array([[bool(holds) for holds in row] for row in rows], dtype=bool)
    analysis.tables[i] = table
    is_scored = not score or not score[0].is_partial
    if not is_scored or may_be_empty([analysis.conjunct(i)], analysis.inputs.visible):
        analysis.empty.add(i)


@_analyse.register
def _(op: ops.Both, i: int, node: Node, analysis: _Analysis) -> None:
    if may_be_empty([analysis.conjunct(part) for part in node.inputs], analysis.inputs.visible):
        analysis.empty.add(i)


def _call(function: Callable[..., Value], arguments: Sequence[Value]) -> Value:
    """A function's value; None where it raises, since its arguments may never meet in a real input."""
    try:
        return plain(function(*arguments))
    except Exception:
        return None


def _check_hashable(node: Node, results: Sequence[Value]) -> None:
    for result in results:
        try:
            hash(result)
        except TypeError:
            raise CompileError(
                f"The function of {node.name!r} returned {result!r}, of type {type(result).__name__}; "
                "values are None, bool, int, float, str or tuples of those.",
                node.expr,
            ) from None


def _coder(node: Node, domain: Domain) -> Callable[[Value], int]:
    if node.encoding is Encoding.NUMERICAL:
        numbers = np.array([float(value) for value in domain.values])
        return lambda value: int(np.abs(numbers - float(value)).argmin())
    codes = domain.codes()
    return lambda value: codes[value_key(value)]


def _means(values: Sequence[Value], most: int) -> list[Value]:
    """Every mean of 1 to `most` of the numbers, exactly, then rounded once (as the interpreter does)."""
    numbers = {Fraction(value) for value in values}
    means: set[Value] = set(values)
    sums = {Fraction(0)}
    for count in range(1, most + 1):
        sums = {total + number for total in sums for number in numbers}
        means |= {as_number(float(total / count)) for total in sums}
        if len(means) > MAX_VALUES:
            break  # too many: `set_domain` refuses them by name
    return sorted(means)
