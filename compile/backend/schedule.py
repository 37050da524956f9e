"""Which layer computes what: every operation in the first place after all that it reads.

A layer is attention and then an MLP, so operations alternate between the two kinds of place. Taking the
first place that comes after the inputs gives the fewest layers for the dependencies, since places have
no limit on how many operations share them.
"""

from collections.abc import Iterator

from rasplens.compile.backend.residual_layout import Layout
from rasplens.compile.ir import AttentionNode

ATTENTION, MLP = 0, 1


Places = dict[int, tuple[int, int] | None]
"""By id of a variable: the layer, and ATTENTION or MLP, that computes it; None for what is embedded."""


def schedule(layout: Layout) -> Places:
    """The place (layer, ATTENTION or MLP) from which on each variable is there; None for what is embedded."""
    last: list[int] = []
    for i, node in enumerate(layout.graph.nodes):
        ready = max((last[source] for source in node.inputs), default=-1)
        if i not in layout.written or not node.inputs:
            last.append(ready)
            continue
        kind = ATTENTION if isinstance(node, AttentionNode) else MLP
        last.append(ready + 1 if (ready + 1) % 2 == kind else ready + 2)
    return {i: None if last[i] < 0 else divmod(last[i], 2) for i in layout.graph.variables}


def computed(layout: Layout, places: Places) -> Iterator[tuple[int, int, int]]:
    """Yield the variables that heads and neurons compute, in order: id, layer, and ATTENTION or MLP."""
    for variable in layout.written:
        place = places[variable]
        if place is not None:
            yield variable, *place


def n_layers(places: Places) -> int:
    """The number of layers that the places need; one at least, so that there is a residual stream."""
    return max((place[0] for place in places.values() if place is not None), default=0) + 1
