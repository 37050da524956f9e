"""The passes in their order.

Each pass is a pure function from a graph to a graph and stands alone; `optimize` runs the chosen ones in
the order of `PASSES`. What the residual stream makes of the graph (views instead of directions) is the
business of `residual_layout.lay_out`, which counts as one more pass, "views".
"""

from collections.abc import Callable, Collection

from rasplens.compile.ir import FiniteGraph
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.passes.common_subexpressions import eliminate_common_subexpressions
from rasplens.compile.passes.dead_code import eliminate_dead_code
from rasplens.compile.passes.if_conversion import convert_choices
from rasplens.compile.passes.linear_form_lookup import look_up_linear_forms
from rasplens.compile.passes.map_fusion import fuse_maps
from rasplens.compile.passes.numeric_casts import insert_numeric_casts
from rasplens.compile.passes.selectors.domain_quotient import quotient_domains
from rasplens.compile.passes.selectors.equality_codes import code_equalities
from rasplens.compile.passes.selectors.split_counts import split_counts
from rasplens.compile.passes.selectors.trivial_predicates import remove_trivial_predicates
from rasplens.compile.passes.value_pruning import prune_values
from rasplens.compile.rasp.input_space import InputSpace

VALUE_PRUNING = "value-pruning"
"""The first pass, which runs the program on its inputs to see which values occur."""

IF_CONVERSION = "if-conversion"
"""The pass that makes heads choose: they may then select nothing, and need a BOS."""


def optimize(
    graph: FiniteGraph, space: InputSpace, passes: Collection[str], limits: CompileLimits = DEFAULT_LIMITS
) -> FiniteGraph:
    """The graph after the chosen passes, in their order."""
    if VALUE_PRUNING in passes:
        graph = prune_values(graph, space, limits)
    for name, run in PASSES.items():
        if name in passes:
            graph = run(graph)
    return graph


def clean_up(graph: FiniteGraph) -> FiniteGraph:
    """The graph without the common subexpressions and chains of maps that other passes have left."""
    return fuse_maps(eliminate_common_subexpressions(graph))


PASSES: dict[str, Callable[[FiniteGraph], FiniteGraph]] = {
    "cse": eliminate_common_subexpressions,
    "numeric-casts": insert_numeric_casts,
    "map-fusion": fuse_maps,
    "split-counts": split_counts,
    IF_CONVERSION: convert_choices,
    "linear-form-lookup": look_up_linear_forms,
    "trivial-predicates": remove_trivial_predicates,
    "domain-quotient": quotient_domains,
    "cleanup": clean_up,
    "equality-codes": code_equalities,
    "dead-code": eliminate_dead_code,
}
"""The passes that look at the graph alone, in order; see their docstrings."""

VIEWS = "views"
"""The pass over the layout: what is linear is a view, and takes no directions."""

ALL_PASSES = (VALUE_PRUNING, *PASSES, VIEWS)
"""The names of all passes, in order."""
