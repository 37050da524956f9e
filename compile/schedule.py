"""Which layer computes what: every operation in the first place after all that it reads.

A layer is attention and then an MLP, so operations alternate between the two kinds of place. Taking the
first place that comes after the inputs gives the fewest layers for the dependencies, since places have
no limit on how many operations share them.
"""

from rasplens.compile import graph as ops
from rasplens.compile.graph import Graph

ATTENTION, MLP = 0, 1


def schedule(graph: Graph) -> dict[int, tuple[int, int]]:
    """The place (layer, ATTENTION or MLP) of every operation; inputs are embedded and have none."""
    last: dict[int, int] = {}
    places: dict[int, tuple[int, int]] = {}
    for i, node in enumerate(graph.nodes):
        ready = max((last[source] for source in node.inputs), default=-1)
        if node.is_selector or isinstance(node.op, ops.Tokens | ops.Indices):
            last[i] = ready
            continue
        kind = ATTENTION if isinstance(node.op, ops.Gather | ops.BosShare) else MLP
        last[i] = ready + 1 if (ready + 1) % 2 == kind else ready + 2
        places[i] = (last[i] // 2, kind)
    return places


def n_layers(places: dict[int, tuple[int, int]]) -> int:
    """The number of layers that the places need; one at least, so that there is a residual stream."""
    return max((layer for layer, _ in places.values()), default=0) + 1
