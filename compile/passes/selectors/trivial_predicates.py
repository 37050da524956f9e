"""Predicates that always hold."""

from dataclasses import replace

from rasplens.compile.ir import BestNode, ConjunctionNode, FiniteGraph, FiniteNode, PredicateNode
from rasplens.compile.passes.rewriting import Rewriting, rewrite


def remove_trivial_predicates(graph: FiniteGraph) -> FiniteGraph:
    """The graph without predicates that always hold.

    A conjunction of no predicates selects all that is seen, and reads nothing.
    """

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if isinstance(node, PredicateNode) and _always_holds(node, rewriting):
            return rewriting.add(ConjunctionNode((), node.name, node.expr, node.may_be_empty))
        if isinstance(node, ConjunctionNode):
            kept = tuple(part for part in node.inputs if not isinstance(rewriting.nodes[part], ConjunctionNode))
            return rewriting.add(replace(node, inputs=kept)) if len(kept) != 1 else kept[0]
        return rewriting.add(node)

    return rewrite(graph, change)


def _always_holds(node: PredicateNode, rewriting: Rewriting) -> bool:
    """Whether a predicate is true wherever its keys and queries can be; a best key is a choice even then."""
    if isinstance(node, BestNode):
        return False
    keys, queries = (rewriting.variable(i) for i in node.inputs)
    return bool(node.table[: len(keys.values) + keys.is_partial, : len(queries.values) + queries.is_partial].all())
