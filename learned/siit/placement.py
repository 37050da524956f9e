"""At which node each part of a program stands: heads at heads, and each part behind those that it reads."""

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import Bounds, LinearConstraint, milp

from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned.siit.circuit import Circuit, CompiledPart, Node

LEAST_SHARE = 1e-6
"""Below this all shares are alike, when each part gets its node."""


def could_stand_for(parts: tuple[CompiledPart, ...], nodes: tuple[Node, ...]) -> Bool[np.ndarray, "part node"]:
    """Heads for what heads gather, MLPs for what neurons compute."""
    return np.array([[bool(part.heads) == node.is_head for node in nodes] for part in parts])


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


def placed(
    shares: Float[np.ndarray, "part node"],
    parts: tuple[CompiledPart, ...],
    nodes: tuple[Node, ...],
    order: frozenset[tuple[int, int]],
) -> Circuit:
    """A node for each part, the shares' product as large as can be; behind the nodes of those that it reads.

    Raises:
        RaspLensError: If there is no such choice.
    """
    n_parts, n_nodes = shares.shape
    stages = np.array([stage(node) for node in nodes])
    each_part = np.kron(np.eye(n_parts), np.ones(n_nodes))
    each_node = np.tile(np.eye(n_nodes), n_parts)
    constraints = [LinearConstraint(each_part, 1, 1), LinearConstraint(each_node, 0, 1)]
    for first, second in order:
        later = np.zeros((n_parts, n_nodes))
        later[second], later[first] = stages, -stages
        constraints.append(LinearConstraint(later.ravel(), 1, np.inf))
    cost = -np.log(np.maximum(shares, LEAST_SHARE))
    possible = could_stand_for(parts, nodes)
    found = milp(cost.ravel(), integrality=1, bounds=Bounds(0, possible.ravel()), constraints=constraints)
    if found.x is None:
        raise RaspLensError(
            f"{n_nodes} nodes are no room for the program's {n_parts} parts, each behind what it reads. Give the "
            "model more layers, heads or neurons, or leave the choice to `ordinary_architecture`."
        )
    chosen = found.x.reshape(n_parts, n_nodes).argmax(axis=1)
    return {nodes[chosen[part]]: parts[part] for part in np.argsort(chosen)}


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
