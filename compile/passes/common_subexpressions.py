"""Equal operations on equal inputs."""

from typing import Any

from rasplens.compile.ir import (
    AttentionNode,
    ConjunctionNode,
    FiniteGraph,
    FiniteNode,
    LinearNode,
    LookupNode,
    PredicateNode,
    VariableNode,
)
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp.values import exact, value_key


def eliminate_common_subexpressions(graph: FiniteGraph) -> FiniteGraph:
    """The graph with equal operations on equal inputs as one, however often the program spells them out."""
    known: dict[tuple[Any, ...], int] = {}

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        key = _identity(node)
        if key not in known:
            known[key] = rewriting.add(node)
        return known[key]

    return rewrite(graph, change)


def _identity(node: FiniteNode) -> tuple[Any, ...]:
    """A key that two nodes share if they compute the same."""
    inputs = tuple(sorted(node.inputs)) if isinstance(node, ConjunctionNode) else node.inputs
    parts: list[Any] = [type(node), inputs]
    if isinstance(node, VariableNode):
        parts += [node.encoding, tuple(map(value_key, node.values))]
    if isinstance(node, LookupNode | PredicateNode):
        parts += [node.table.shape, node.table.tobytes()]
    if isinstance(node, LinearNode):
        parts += [exact(node.fst_fac), exact(node.snd_fac)]
    if isinstance(node, AttentionNode):
        parts.append(tuple(map(value_key, node.fallbacks)))
    return tuple(parts)
