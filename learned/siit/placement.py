"""Whether each part of a program comes after those that it reads."""

from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned.siit.circuit import Circuit, CompiledPart, Node


def reads(compiled: CompiledModel, parts: tuple[CompiledPart, ...]) -> frozenset[tuple[int, int]]:
    """Return pairs of parts by number: the second part reads the first."""
    graph = compiled.circuit()
    of = {name: part for part, names in enumerate(map(_names, parts)) for name in names}
    ends = ((of.get(sender), of.get(receiver)) for sender, receiver in graph.edges)
    return frozenset((a, b) for a, b in ends if a is not None and b is not None and a != b)


def _names(part: CompiledPart) -> list[str]:
    """Return the names of a part's heads, or of its variables' neurons, in the ground-truth circuit."""
    if part.heads:
        return [str(Node(part.layer, head)) for head in part.heads]
    return [f"L{part.layer} {name}" for name in part.variables]


def check_order(compiled: CompiledModel, circuit: Circuit) -> None:
    """Raises if a part does not come after one that it reads.

    Raises:
        RaspLensError: With the two.
    """
    nodes, parts = list(circuit), tuple(circuit.values())
    for first, second in sorted(reads(compiled, parts)):
        if stage(nodes[second]) <= stage(nodes[first]):
            raise RaspLensError(
                f"{nodes[second]} cannot compute {parts[second]}: that reads {parts[first]}, which {nodes[first]} "
                f"computes, and {nodes[first]} does not come before {nodes[second]}."
            )


def stage(node: Node) -> int:
    """Its place in the forward pass: heads of a layer side by side, then its MLP."""
    return 2 * node.layer + (not node.is_head)
