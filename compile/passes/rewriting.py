"""How a pass rebuilds a graph: node by node, each after what it reads."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rasplens.compile.analysis.domains import Finite, FiniteNode


@dataclass
class Rewriting:
    """A graph as it is rebuilt, node by node."""

    nodes: list[FiniteNode] = field(default_factory=list)
    new_id: dict[int, int] = field(default_factory=dict)

    def add(self, node: FiniteNode) -> int:
        """The id of a further node."""
        self.nodes.append(node)
        return len(self.nodes) - 1


Change = Callable[[int, FiniteNode, Rewriting], int]
"""From a node whose inputs are rewritten already (and its old id) to the id of what takes its place."""


def rewrite(finite: Finite, change: Change) -> Finite:
    """The graph with every node changed."""
    rewriting = Rewriting()
    for i, node in enumerate(finite.nodes):
        inputs = tuple(rewriting.new_id[source] for source in node.inputs)
        rewriting.new_id[i] = change(i, replace(node, inputs=inputs), rewriting)
    names = {name: rewriting.new_id[i] for name, i in finite.names.items()}
    return Finite(tuple(rewriting.nodes), rewriting.new_id[finite.output], names)


def no_function(*values: object) -> None:
    """Stands where the compiler has a table and no function."""
    raise AssertionError("what a pass makes is known by its table alone")
