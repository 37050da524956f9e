"""The optimiser: passes that make a finite graph smaller without changing what it computes.

Each pass is a pure function from a graph to a graph and stands alone; `optimize` runs the chosen ones in
the order of `PASSES`. What the residual stream makes of the graph (views instead of directions) is the
business of `residual.lay_out`, which counts as one more pass, "fold".
"""

from collections.abc import Callable, Collection

from rasplens.compile.finite import Finite
from rasplens.compile.inputs import InputSpace
from rasplens.compile.passes.casting import cast
from rasplens.compile.passes.fusing import fuse
from rasplens.compile.passes.linear_forms import linear
from rasplens.compile.passes.merging import merge
from rasplens.compile.passes.narrowing import coarse, everything
from rasplens.compile.passes.reaching import reached
from rasplens.compile.passes.routing import route
from rasplens.compile.passes.using import used

__all__ = ["ALL_PASSES", "FOLD", "PASSES", "optimize"]


def optimize(finite: Finite, space: InputSpace, passes: Collection[str]) -> Finite:
    """The graph after the chosen passes, in the order of `PASSES`."""
    for name, run in PASSES.items():
        if name in passes:
            finite = run(finite, space)
    return finite


def tidy(finite: Finite, space: InputSpace) -> Finite:
    """What the passes before have left to merge and to fuse."""
    return fuse(merge(finite, space), space)


PASSES: dict[str, Callable[[Finite, InputSpace], Finite]] = {
    "reached": reached,
    "merge": merge,
    "cast": cast,
    "fuse": fuse,
    "route": route,
    "linear": linear,
    "everything": everything,
    "coarse": coarse,
    "tidy": tidy,
    "used": used,
}
"""The passes over the graph, in order; see their docstrings."""

FOLD = "fold"
"""The pass over the layout: what is linear is a view, and takes no directions."""

ALL_PASSES = (*PASSES, FOLD)
