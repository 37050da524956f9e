"""Names of the parts of an assembled transformer: its variables, its result, its heads and neurons."""

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.backend.assembly import Assembly
from rasplens.compile.backend.residual_layout import Layout
from rasplens.compile.backend.schedule import ATTENTION, Places
from rasplens.compile.ir import FiniteGraph, Graph
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.interpreter import expressions
from rasplens.compile.variable import Axes, Variable
from rasplens.model.hook_points import EMBEDDED, act_name


def held_variables(program: rasp.SOp, layout: Layout, places: Places, assembly: Assembly) -> dict[str, Variable]:
    """Return the variables in the residual stream, by name: the program's s-ops, then the compiler's own."""
    graph, found = layout.graph, {}
    of_program = {expr.name for expr in expressions(program) if isinstance(expr, rasp.SOp)}
    for name, i in _named(layout).items():
        if not layout.can_read(i):
            continue
        node, columns = graph.variable(i), layout.reading(i)
        directions = np.setdiff1d(np.flatnonzero(columns.any(axis=1)), [] if layout.bos is None else [layout.bos])
        found[name] = Variable(
            name,
            node.encoding,
            node.values,
            columns,
            Axes(directions),
            written_at=_hook_point(places[i], has_mlps=not assembly.transformer.config.attn_only),
            is_view=i not in layout.slices,
            is_auxiliary=name not in of_program,
            kind_of=node.kind_of,
        )
    return found


def _named(layout: Layout) -> dict[str, int]:
    """The variables by name: those with names of the graph, then written ones that have lost theirs."""
    names = layout.graph.names
    named = set(names.values())
    unnamed = {layout.graph.nodes[i].name: i for i in layout.slices if i not in named}
    return names | {name: i for name, i in unnamed.items() if name not in names}


def _hook_point(place: tuple[int, int] | None, has_mlps: bool) -> str:
    """The hook point of the residual stream from which on it holds what is computed at a place."""
    if place is None:
        return EMBEDDED
    layer, kind = place
    return act_name(f"resid_{'mid' if kind == ATTENTION and has_mlps else 'post'}", layer)


def output_name(program: rasp.SOp, graph: FiniteGraph) -> str:
    """The name of the result: the program's, if that is what it still names."""
    if graph.names.get(program.name) == graph.output:
        return program.name
    return next(name for name, i in graph.names.items() if i == graph.output)


def written_name(i: int, layout: Layout) -> str:
    """The name of what a head or neurons compute: of the one variable that they write, if it is one."""
    written = layout.written[i]
    return layout.graph.nodes[written[0] if len(written) == 1 else i].name


def function_arguments(program: rasp.SOp, lowered: Graph, whole: FiniteGraph) -> dict[int, tuple[Value, ...]]:
    """By place among the expressions of the program, what the values of every s-op are."""
    return {
        place: tuple(whole.variable(lowered.node_of[id(expr)]).values)
        for place, expr in enumerate(expressions(program))
        if isinstance(expr, rasp.SOp)
    }
