"""A program as a graph of its expressions."""

import networkx as nx

from rasplens.compile.rasp import language as rasp
from rasplens.compile.rasp.interpreter import expressions


def program_graph(program: rasp.RASPExpr) -> nx.DiGraph:
    """The expressions of a program by number, with `label`, `is_selector` and `depth`; edges lead to readers."""
    graph, number = nx.DiGraph(), {}
    for i, expr in enumerate(expressions(program)):
        number[id(expr)] = i
        reads = [number[id(child)] for child in expr.children]
        depth = 1 + max((graph.nodes[j]["depth"] for j in reads), default=-1)
        graph.add_node(i, label=expr.name, is_selector=isinstance(expr, rasp.Selector), depth=depth)
        graph.add_edges_from((j, i) for j in reads)
    return graph
