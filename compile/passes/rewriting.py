"""How a pass rebuilds a graph: node by node, each after what it reads."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rasplens.compile.ir import FiniteGraph, FiniteNode, SelectorNode, VariableNode, selector_at, variable_at


@dataclass
class Rewriting:
    """A graph as it is rebuilt, node by node."""

    nodes: list[FiniteNode] = field(default_factory=list)
    new_id: dict[int, int] = field(default_factory=dict)

    def add(self, node: FiniteNode) -> int:
        """The id of a further node."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def variable(self, i: int) -> VariableNode:
        """The variable with an id, of those that are rebuilt."""
        return variable_at(self.nodes, i)

    def selector(self, i: int) -> SelectorNode:
        """The selector with an id, of those that are rebuilt."""
        return selector_at(self.nodes, i)


Change = Callable[[int, FiniteNode, Rewriting], int]
"""From a node whose inputs are rewritten already (and its old id) to the id of what takes its place."""


def rewrite(graph: FiniteGraph, change: Change) -> FiniteGraph:
    """The graph with every node changed."""
    rewriting = Rewriting()
    for i, node in enumerate(graph.nodes):
        inputs = tuple(rewriting.new_id[source] for source in node.inputs)
        rewriting.new_id[i] = change(i, replace(node, inputs=inputs), rewriting)
    names = {name: rewriting.new_id[i] for name, i in graph.names.items()}
    return FiniteGraph(tuple(rewriting.nodes), rewriting.new_id[graph.output], names)
