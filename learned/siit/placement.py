"""Whether each part of a program stands behind those that it reads."""

from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned.siit.circuit import Circuit, CompiledPart, Node


def reads(compiled: CompiledModel, parts: tuple[CompiledPart, ...]) -> frozenset[tuple[int, int]]:
    """Which part, the second of each two, reads which other one."""
    graph = compiled.circuit()
    of = {name: part for part, names in enumerate(map(_names, parts)) for name in names}
    ends = ((of.get(sender), of.get(receiver)) for sender, receiver in graph.edges)
    return frozenset((a, b) for a, b in ends if a is not None and b is not None and a != b)


def _names(part: CompiledPart) -> list[str]:
    """As the ground-truth circuit calls its heads, or the neurons of its variables."""
    if part.heads:
        return [str(Node(part.layer, head)) for head in part.heads]
    return [f"L{part.layer} {name}" for name in part.variables]


def check_order(compiled: CompiledModel, circuit: Circuit) -> None:
    """Raises where a part stands no further back than one that it reads.

    Raises:
        RaspLensError: With the two.
    """
    nodes, parts = list(circuit), tuple(circuit.values())
    for first, second in sorted(reads(compiled, parts)):
        if stage(nodes[second]) <= stage(nodes[first]):
            raise RaspLensError(
                f"{nodes[second]} cannot stand for {parts[second]}: it reads {parts[first]}, and {nodes[first]}, "
                "which stands for that, is not before it."
            )


def stage(node: Node) -> int:
    """Its place in the forward pass: heads of a layer side by side, then its MLP."""
    return 2 * node.layer + (not node.is_head)
