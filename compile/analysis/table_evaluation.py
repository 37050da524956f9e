"""A finite graph on many sequences at once, by its tables: what every variable is, and where one is undefined.

This is how the compiler looks at its own program: quick, but only as right as the tables. Compiled models
are verified against the interpreter, which shares nothing with this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
from jaxtyping import Bool, Int, Shaped

from rasplens.compile.analysis.domains import coder
from rasplens.compile.ir import (
    UNDEFINED,
    AggregateNode,
    BestMatchNode,
    BosAttentionNode,
    ConjunctionNode,
    FiniteGraph,
    FiniteNode,
    IndicesNode,
    LinearNode,
    LookupNode,
    PredicateNode,
    SelectBestNode,
    SelectorNode,
    TokensNode,
    VariableNode,
    WhereNode,
    variable_at,
)
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.values import value_key

Codes = Int[np.ndarray, "batch pos"]


@dataclass(frozen=True, eq=False)
class Trace:
    """The trace of a program on a batch of sequences of one length.

    Attributes:
        ids: The sequences, as codes of the tokens.
        visible: What positions see: boolean `[query, key]`.
        codes: By node id, the codes of every variable.
        selected: By node id, what every selector selects: boolean `[batch, query, key]`.
        failures: By node id, on which sequences it is undefined because of an average of what cannot be averaged,
            or an error in a function or predicate.
        unknown: By node id, the positions (of a selector the queries) at which it fails, or reads what fails. What
            fails nowhere has no entry.
    """

    ids: Codes
    visible: Bool[np.ndarray, "query key"]
    codes: dict[int, Codes] = field(default_factory=dict)
    selected: dict[int, Bool[np.ndarray, "batch query key"]] = field(default_factory=dict)
    failures: dict[int, Bool[np.ndarray, " batch"]] = field(default_factory=dict)
    unknown: dict[int, Bool[np.ndarray, "batch pos"]] = field(default_factory=dict)

    def fails(self) -> Bool[np.ndarray, " batch"]:
        """The sequences on which the program has no value somewhere."""
        return np.logical_or.reduce([np.zeros(len(self.ids), dtype=bool), *self.failures.values()])

    def is_known(self, *nodes: int) -> Bool[np.ndarray, "batch pos"]:
        """The positions at which some nodes neither fail nor read what fails."""
        unknown = (self.unknown[i] for i in nodes if i in self.unknown)
        return ~np.logical_or.reduce([np.zeros(self.ids.shape, dtype=bool), *unknown])


def trace(graph: FiniteGraph, ids: Codes, visible: np.ndarray) -> Trace:
    """The variables and selectors of a graph on sequences of one length, given as codes of the tokens."""
    found = Trace(ids, visible[: ids.shape[1], : ids.shape[1]])
    for i in range(len(graph.nodes)):
        trace_node(i, graph.nodes, found)
    return found


def trace_node(i: int, nodes: Sequence[FiniteNode], found: Trace) -> None:
    """Adds to a trace what one node is, of which all that it reads is there."""
    node = nodes[i]
    if isinstance(node, SelectorNode):
        found.selected[i] = _select(node, i, nodes, found) & found.visible
    else:
        found.codes[i] = _compute(node, i, nodes, found)
    if found.unknown:
        _note_what_reads_failures(i, node, found)


@singledispatch
def _compute(node: VariableNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    raise AssertionError(f"no trace of {node}")


@_compute.register
def _(node: TokensNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    return found.ids


@_compute.register
def _(node: IndicesNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    return np.broadcast_to(np.arange(found.ids.shape[1]), found.ids.shape)


@_compute.register
def _(node: LookupNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    at = tuple(found.codes[source] for source in node.inputs)
    _note_errors(i, node, at, found)
    return node.table[at]


@_compute.register
def _(node: LinearNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    fst, snd = (numbers(variable_at(nodes, source)) for source in node.inputs)
    x, y = (found.codes[source] for source in node.inputs)
    total = float(node.fst_fac) * fst[x] + float(node.snd_fac) * snd[y]
    return np.where((x == UNDEFINED) | (y == UNDEFINED), UNDEFINED, nearest_codes(node, total))


@_compute.register
def _(node: WhereNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    inputs = [variable_at(nodes, source) for source in node.inputs]
    return chosen_codes(node, inputs, [found.codes[source] for source in node.inputs])


@_compute.register
def _(node: AggregateNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    result = np.full(found.ids.shape, UNDEFINED)
    is_empty = np.ones(result.shape, dtype=bool)
    for selector, source in node.pairs:
        selected, codes = found.selected[selector], found.codes[source]
        count = selected.sum(axis=-1)
        read = _average if node.is_numerical else _gather
        result = np.where(count > 0, read(i, node, variable_at(nodes, source), selected, codes, found), result)
        is_empty &= count == 0
    fallback = node.fallbacks[0] if node.fallbacks else None
    code = UNDEFINED if fallback is None else coder(node, node.domain)(fallback)
    return np.where(is_empty, code, result)


@_compute.register
def _(node: BosAttentionNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> Codes:
    width = found.selected[node.inputs[0]].sum(axis=-1)
    return nearest_codes(node, 1 / (1 + width))


def _gather(
    i: int, node: VariableNode, source: VariableNode, selected: np.ndarray, codes: Codes, found: Trace
) -> Codes:
    """The one value that is selected; a failure where there are several."""
    of_keys = np.broadcast_to(codes[:, None, :], selected.shape)
    most, unset = len(source.values), len(source.values) + 1
    highest = np.where(selected, np.where(of_keys == UNDEFINED, most, of_keys), -1).max(axis=-1)
    lowest = np.where(selected, np.where(of_keys == UNDEFINED, most, of_keys), unset).min(axis=-1)
    _note_failure(i, (highest != lowest) & (highest >= 0), found)
    at = np.where(highest == most, UNDEFINED, np.maximum(lowest, 0) % unset)
    return np.append(recode(source, node), UNDEFINED)[at]


def _average(
    i: int, node: VariableNode, source: VariableNode, selected: np.ndarray, codes: Codes, found: Trace
) -> Codes:
    """The mean of what is selected; a failure where some of it is undefined and some is not."""
    is_defined = (codes != UNDEFINED)[:, None, :] & selected
    count, selected_count = is_defined.sum(axis=-1), selected.sum(axis=-1)
    total = np.einsum("bqk,bk->bq", is_defined, numbers(source)[codes])
    _note_failure(i, (count > 0) & (count < selected_count), found)
    return np.where(count == 0, UNDEFINED, nearest_codes(node, total / np.maximum(count, 1)))


@singledispatch
def _select(node: SelectorNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> np.ndarray:
    raise AssertionError(f"no trace of {node}")


@_select.register
def _(node: PredicateNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> np.ndarray:
    return _satisfies(i, node, found)


@_select.register
def _(node: SelectBestNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> np.ndarray:
    ranks = np.append(ranking(variable_at(nodes, node.score).values), UNDEFINED)[found.codes[node.score]]
    candidates = np.where(_satisfies(i, node, found) & found.visible, ranks[:, None, :], UNDEFINED)
    return (candidates == candidates.max(axis=-1, keepdims=True)) & (candidates != UNDEFINED)


@_select.register
def _(node: BestMatchNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> np.ndarray:
    places = np.where(found.visible, _satisfies(i, node, found), 0)
    return (places == places.max(axis=-1, keepdims=True)) & (places > 0)


@_select.register
def _(node: ConjunctionNode, i: int, nodes: Sequence[FiniteNode], found: Trace) -> np.ndarray:
    return np.logical_and.reduce([found.selected[part] for part in node.inputs])


def _satisfies(i: int, node: PredicateNode, found: Trace) -> Shaped[np.ndarray, "batch query key"]:
    """Return the entry of a selector's table for every key and query."""
    keys, queries = found.codes[node.keys], found.codes[node.queries]
    at = tuple(np.broadcast_arrays(keys[:, None, :], queries[:, :, None]))
    _note_errors(i, node, at, found)
    return node.table[at]


def ranking(values: tuple[Value, ...]) -> np.ndarray:
    """The rank of every score, from 0; equal scores share one."""
    ascending = sorted(set(values))
    return np.array([ascending.index(value) for value in values])


def numbers(node: VariableNode) -> np.ndarray:
    """The values of a variable as floats; at the last place, for undefined, 0."""
    return np.array([*(float(value) for value in node.values), 0.0])


def chosen_codes(
    node: WhereNode, inputs: Sequence[VariableNode], codes: Sequence[np.ndarray]
) -> Int[np.ndarray, "..."]:
    """The codes of a choice where its condition and branches have the given ones."""
    truth = np.array([*(bool(value) for value in inputs[0].values), False])[codes[0]]
    first, second = (recode(branch, node)[at] for branch, at in zip(inputs[1:], codes[1:], strict=True))
    return np.where(codes[0] == UNDEFINED, UNDEFINED, np.where(truth, first, second))


def recode(source: VariableNode, target: VariableNode) -> np.ndarray:
    """The target's code for every code of the source, undefined last; undefined where it lacks the value."""
    if target.is_numerical:
        return np.append(nearest_codes(target, numbers(source)[:-1]), UNDEFINED)
    known = target.domain.codes()
    return np.array([*(known.get(value_key(value), UNDEFINED) for value in source.values), UNDEFINED])


def nearest_codes(node: VariableNode, found: np.ndarray) -> np.ndarray:
    """The codes of numbers that are values of the variable up to rounding."""
    values = numbers(node)[:-1]
    right = np.clip(np.searchsorted(values, found), 1, max(1, len(values) - 1))
    if len(values) == 1:
        return np.zeros(np.shape(found), dtype=int)
    return np.where(np.abs(found - values[right - 1]) <= np.abs(found - values[right]), right - 1, right)


def _note_errors(i: int, node: LookupNode | PredicateNode, at: tuple[np.ndarray, ...], found: Trace) -> None:
    if not node.raises:
        return
    failing = np.zeros(node.table.shape, dtype=bool)
    for place in node.raises:
        failing[place] = True
    _note_failure(i, failing[at], found)


def _note_failure(i: int, failing: Bool[np.ndarray, "batch pos *key"], found: Trace) -> None:
    """Notes where a node fails; for keys that a query does not see on the sequence alone."""
    of_sequence = failing.reshape(len(failing), -1).any(axis=1)
    found.failures[i] = found.failures.get(i, np.zeros_like(of_sequence)) | of_sequence
    if of_sequence.any():
        at = failing if failing.ndim == found.ids.ndim else (failing & found.visible).any(axis=-1)
        found.unknown[i] = ~found.is_known(i) | at


def _note_what_reads_failures(i: int, node: FiniteNode, found: Trace) -> None:
    """Notes where a node reads what fails: an aggregate where it selects that, a selector among all keys."""
    is_known = found.is_known(i)
    if isinstance(node, AggregateNode):
        for selector, source in node.pairs:
            gathered = found.selected[selector] & ~found.is_known(source)[:, None, :]
            is_known &= found.is_known(selector) & ~gathered.any(axis=-1)
    elif isinstance(node, PredicateNode):
        seen = found.visible & ~found.is_known(node.keys, *node.inputs[2:])[:, None, :]  # a score is of keys too
        is_known &= found.is_known(node.queries) & ~seen.any(axis=-1)
    else:
        is_known &= found.is_known(*node.inputs)
    if not is_known.all():
        found.unknown[i] = ~is_known
