"""Variables that need no directions of their own: they are linear in what the residual stream holds already."""

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import Finite


def is_view(finite: Finite, variable: int) -> bool:
    """Whether a variable is linear in what it reads: a map of a categorical one, or a form of numbers."""
    node = finite.nodes[variable]
    if isinstance(node.op, ops.Apply):
        return len(node.inputs) == 1 and not finite.nodes[node.inputs[0]].is_numerical
    return isinstance(node.op, ops.Linear) and not node.is_partial
