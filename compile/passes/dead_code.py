"""Removal of nodes that the output does not depend on."""

from dataclasses import replace

from rasplens.compile.analysis.views import is_view
from rasplens.compile.ir import FiniteGraph


def eliminate_dead_code(graph: FiniteGraph) -> FiniteGraph:
    """The graph without what the output does not depend on, except for named views of what it does."""
    needed = {graph.output, 0}
    for i in reversed(range(len(graph.nodes))):
        if i in needed:
            needed.update(graph.nodes[i].inputs)
    for i in graph.names.values():
        if is_view(graph, i) and all(source in needed for source in graph.nodes[i].inputs):
            needed.add(i)
    new_id = {old: new for new, old in enumerate(sorted(needed))}
    nodes = [replace(graph.nodes[old], inputs=tuple(new_id[i] for i in graph.nodes[old].inputs)) for old in new_id]
    names = {name: new_id[i] for name, i in graph.names.items() if i in new_id}
    return FiniteGraph(tuple(nodes), new_id[graph.output], names)
