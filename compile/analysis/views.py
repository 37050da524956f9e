"""Variables that need no directions of their own: they are linear in what the residual stream holds already."""

from typing import TypeGuard

from rasplens.compile.ir import FiniteGraph, LinearNode, LookupNode, VariableNode


def is_view(graph: FiniteGraph, variable: int) -> bool:
    """Whether a variable is linear in what it reads: a map of a categorical one, or a form of numbers."""
    node = graph.variable(variable)
    return is_map_of_class(node, graph) or (isinstance(node, LinearNode) and not node.is_partial)


def is_map_of_class(node: VariableNode, graph: FiniteGraph) -> TypeGuard[LookupNode]:
    """Whether a variable is a function of one categorical variable."""
    return (
        isinstance(node, LookupNode) and len(node.inputs) == 1 and not graph.variable(node.inputs[0]).is_numerical
    )
