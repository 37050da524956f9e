"""The optimiser: passes that make a finite graph smaller without changing what it computes.

Each pass is a pure function from a graph to a graph and stands alone; `optimize` runs the chosen ones in
the order of `PASSES`. What the residual stream makes of the graph (views instead of directions) is the
business of `residual.lay_out`, which counts as one more pass, "fold".
"""

from collections.abc import Callable, Collection

from rasplens.compile.analysis.domains import Finite
from rasplens.compile.passes.common_subexpressions import merge
from rasplens.compile.passes.dead_code import used
from rasplens.compile.passes.domain_quotient import coarse, everything
from rasplens.compile.passes.if_conversion import route
from rasplens.compile.passes.linear_form_lookup import linear
from rasplens.compile.passes.map_fusion import fuse
from rasplens.compile.passes.numeric_casts import cast
from rasplens.compile.passes.value_pruning import reached
from rasplens.compile.rasp.input_space import InputSpace

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
