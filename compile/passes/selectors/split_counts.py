"""Counts of keys that are compared by one variable first, and by another where that ties.

Of keys that are pairs, such as a token and its position, a head needs a direction for every pair. But a pair is
smaller than another if its first part is, or if the first parts are equal and its second part is smaller. Never do
both hold: two heads count the keys of either kind, by the parts alone, and the counts add up.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Bool

from rasplens.compile.analysis.domains import coder, make_domain
from rasplens.compile.analysis.selection_size import most_selected
from rasplens.compile.ir import (
    UNDEFINED,
    BosAttentionNode,
    ConjunctionNode,
    Domain,
    FiniteGraph,
    FiniteNode,
    LinearNode,
    LookupNode,
    PredicateNode,
    VariableNode,
)
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp import Encoding

LARGEST = 10_000_000
"""The most pairs of pairs that are examined."""


@dataclass(frozen=True, eq=False)
class _Split:
    """A predicate of pairs, split: the first parts decide, or are tied and the second ones do.

    Attributes:
        first: The ids of the key's and the query's first part.
        second: Of their second parts.
        decided: Where the first parts alone select: `[key code, query code]`, undefined last.
        tied: Where they leave it to the second parts.
        selected: Where these select.
    """

    first: tuple[int, int]
    second: tuple[int, int]
    decided: Bool[np.ndarray, "key query"]
    tied: Bool[np.ndarray, "key query"]
    selected: Bool[np.ndarray, "key query"]


def split_counts(graph: FiniteGraph) -> FiniteGraph:
    """The graph with counts over ordered pairs as sums of two counts, by first parts and by second parts."""
    splits = {i: split for i in graph.variables if (split := _split(graph, i)) is not None}
    totals: dict[int, int] = {}

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if isinstance(node, BosAttentionNode) and i in splits:
            new = rewriting.add(node)
            totals[new] = _total(node, splits[i], rewriting)
            return new
        if isinstance(node, LookupNode) and node.inputs[0] in totals:
            return rewriting.add(_of_total(node, totals[node.inputs[0]], rewriting))
        return rewriting.add(node)

    return rewrite(graph, change)


def _split(graph: FiniteGraph, i: int) -> _Split | None:
    """How a count over pairs can be split; None where it cannot, or where pairs are no more than their parts."""
    node = graph.variable(i)
    if not isinstance(node, BosAttentionNode) or node.by_layout is not None or not _is_only_looked_up(graph, i):
        return None
    predicate = graph.nodes[node.inputs[0]]
    if type(predicate) is not PredicateNode or predicate.table[-1].any() or predicate.table[:, -1].any():
        return None
    keys, queries = graph.variable(predicate.keys), graph.variable(predicate.queries)
    if not (_is_of_pairs(graph, keys) and _is_of_pairs(graph, queries)):
        return None
    assert isinstance(keys, LookupNode)
    assert isinstance(queries, LookupNode)
    n_parts = sum(len(graph.variable(part).values) for part in keys.inputs)
    if keys.table.size * queries.table.size > LARGEST or min(predicate.table.shape) - 1 <= n_parts:
        return None
    return next(_splits(predicate.table, keys, queries), None)


def _is_only_looked_up(graph: FiniteGraph, i: int) -> bool:
    readers = [node for node in graph.nodes if i in node.inputs]
    return graph.output != i and all(isinstance(node, LookupNode) and len(node.inputs) == 1 for node in readers)


def _is_of_pairs(graph: FiniteGraph, node: VariableNode) -> bool:
    if not isinstance(node, LookupNode) or len(set(node.inputs)) < 2 or node.is_partial:
        return False
    parts = [graph.variable(part) for part in node.inputs]
    return not any(part.is_partial or part.is_numerical for part in parts)


def _splits(table: np.ndarray, keys: LookupNode, queries: LookupNode) -> Iterator[_Split]:
    """All ways to read a predicate of pairs as first parts, then second ones."""
    for key_axes, query_axes in itertools.product(((0, 1), (1, 0)), repeat=2):
        key_codes, query_codes = (
            keys.table[:-1, :-1].transpose(key_axes),
            queries.table[:-1, :-1].transpose(query_axes),
        )
        met = np.einsum(
            "ab,cd->acbd", keys.met[:-1, :-1].transpose(key_axes), queries.met[:-1, :-1].transpose(query_axes)
        )
        holds = table[key_codes][:, :, query_codes].transpose(0, 2, 1, 3) & met
        some, every = holds.any(axis=(2, 3)), (holds | ~met).all(axis=(2, 3))
        tied = some & ~every
        selected = holds[tied].any(axis=0)
        if tied.any() and (some & every).any() and (holds[tied] == (selected & met[tied])).all():
            first, second = ((keys.inputs[key_axes[part]], queries.inputs[query_axes[part]]) for part in range(2))
            decided, tied, selected = (np.pad(part, ((0, 1), (0, 1))) for part in (some & every, tied, selected))
            yield _Split(first, second, decided, tied, selected)


def _total(node: BosAttentionNode, split: _Split, rewriting: Rewriting) -> int:
    """Both counts, added up."""

    def selector(parts: tuple[int, int], table: np.ndarray, name: str) -> int:
        inputs = tuple(rewriting.new_id[part] for part in parts)
        return rewriting.add(PredicateNode(inputs, f"{name} of {node.name}", node.expr, True, table))

    decided = selector(split.first, split.decided, "first parts")
    parts = selector(split.first, split.tied, "ties"), selector(split.second, split.selected, "second parts")
    tied = rewriting.add(ConjunctionNode(parts, f"ties of {node.name}", node.expr, True))
    counts = [_count(node, selected, rewriting) for selected in (decided, tied)]
    domain = Domain(tuple(range(max(_counted(node)) + 1)), False)
    return rewriting.add(
        LinearNode(tuple(counts), f"total of {node.name}", node.expr, Encoding.NUMERICAL, domain, 1, 1)
    )


def _count(node: BosAttentionNode, selector: int, rewriting: Rewriting) -> int:
    """How many keys are selected, as a number: any that the whole count can be, or fewer."""
    most = most_selected(rewriting.nodes, selector, max(_counted(node)))
    name, counts = rewriting.nodes[selector].name, list(range(most + 1))
    attended = replace(node, inputs=(selector,), name=f"attention on BOS of {name}")
    shares = make_domain(attended, [Fraction(1, 1 + count) for count in counts], False)
    at = rewriting.add(replace(attended, domain=shares))
    number = VariableNode((at,), f"number of {name}", node.expr, Encoding.NUMERICAL, Domain((), False))
    domain = make_domain(number, counts, False)
    share_code, code_of = coder(attended, shares), coder(number, domain)
    table = np.full(len(counts) + 1, UNDEFINED)
    for count in counts:
        table[share_code(Fraction(1, 1 + count))] = code_of(count)
    met = np.append(np.ones(len(counts), dtype=bool), False)
    return rewriting.add(LookupNode((at,), number.name, node.expr, Encoding.NUMERICAL, domain, table, met))


def _counted(node: BosAttentionNode) -> list[int]:
    """Return the number of counted keys, by the code of the attention on BOS."""
    return [round(1 / share) - 1 for share in node.values]


def _of_total(node: LookupNode, total: int, rewriting: Rewriting) -> LookupNode:
    """The lookup in the number that attention on BOS stands for."""
    attended = rewriting.nodes[node.inputs[0]]
    assert isinstance(attended, BosAttentionNode)
    counted, counts = _counted(attended), rewriting.variable(total).values
    table, met = np.full(len(counts) + 1, UNDEFINED), np.zeros(len(counts) + 1, dtype=bool)
    table[counted], met[counted] = node.table[:-1], node.met[:-1]
    return replace(node, inputs=(total,), table=table, met=met, raises={})
