"""Choices that attention can make."""

import numpy as np

from rasplens.compile.analysis.views import is_view
from rasplens.compile.ir import (
    AggregateNode,
    BestNode,
    ConjunctionNode,
    FiniteGraph,
    FiniteNode,
    PredicateNode,
    WhereNode,
)
from rasplens.compile.passes.rewriting import Rewriting, rewrite


def convert_choices(graph: FiniteGraph) -> FiniteGraph:
    """The graph with a choice between two aggregates made by their selectors, where its condition is in time.

    `Where(c, Aggregate(S, x), Aggregate(T, y))` is one variable that two heads write, the first attending
    only where c holds, the second only where it does not: no MLP is needed to choose.
    """
    uses = np.bincount([source for node in graph.nodes for source in node.inputs] + [graph.output, 0])

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if not isinstance(node, WhereNode) or not _is_convertible(graph, i, uses):
            return rewriting.add(node)
        condition, *branches = node.inputs
        inputs: list[int] = []
        for branch, wanted in zip(branches, (True, False), strict=True):
            selector, source = rewriting.nodes[branch].inputs
            inputs += [_only_where(condition, wanted, selector, rewriting), source]
        return rewriting.add(
            AggregateNode(
                tuple(inputs), node.name, node.expr, node.encoding, node.domain, (None,), by_layout=node.by_layout
            )
        )

    return rewrite(graph, change)


def _is_convertible(graph: FiniteGraph, choice: int, uses: np.ndarray) -> bool:
    node = graph.variable(choice)
    condition, *branches = (graph.variable(i) for i in node.inputs)
    aggregates = [branch for branch in branches if isinstance(branch, AggregateNode) and len(branch.inputs) == 2]
    return (
        len(aggregates) == 2
        and all(uses[i] == 1 for i in node.inputs[1:])
        and all(branch.fallbacks in ((), (None,)) for branch in aggregates)
        and not any(isinstance(graph.nodes[branch.inputs[0]], BestNode) for branch in aggregates)
        and all(branch.encoding is node.encoding for branch in aggregates)
        and not condition.is_partial
        and is_view(graph, node.inputs[0])
        and not graph.nodes[condition.inputs[0]].inputs
    )


def _only_where(condition: int, wanted: bool, selector: int, rewriting: Rewriting) -> int:
    """The selector, of nothing where the condition is not as wanted."""
    node = rewriting.nodes[selector]
    truth = np.array([*(bool(value) is wanted for value in rewriting.variable(condition).values), False])
    table = np.zeros((len(truth), len(truth)), dtype=bool)
    table[:-1] = truth  # of the query alone: the key is the condition too, only because every key has one
    reads = (condition, condition)
    gate = rewriting.add(PredicateNode(reads, f"{node.name} (gate)", node.expr, True, table))
    parts = node.inputs if isinstance(node, ConjunctionNode) else (selector,)
    return rewriting.add(ConjunctionNode((*parts, gate), node.name, node.expr, True))
