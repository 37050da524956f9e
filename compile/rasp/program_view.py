"""The notebook view of a program: what it computes, its text and its graph; HTML without scripts."""

import networkx as nx
from markupsafe import Markup

from rasplens.compile.rasp import language as rasp
from rasplens.compile.rasp.program_graph import program_graph
from rasplens.compile.rasp.program_text import program_text

WIDTH, HEIGHT = 150, 62
"""Pixels between the columns and between the rows of a drawn program."""

MOST_NODES = 40
"""Larger programs are shown as text only."""


DRAWING = Markup(
    '<svg role="img" aria-label="{}" viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}" style="max-width:100%">{}{}</svg>'
)
EDGE = Markup('<line x1="{:.0f}" y1="{:.0f}" x2="{:.0f}" y2="{:.0f}" stroke="currentColor" opacity="0.35"/>')
NODE = Markup(
    '<g transform="translate({:.0f} {:.0f})">'
    '<rect x="-6" y="-6" width="12" height="12" rx="{}" fill="{}" transform="rotate(45)"/>'
    '<text y="-12" text-anchor="middle" font-size="12" fill="currentColor">{}</text></g>'
)
MARKS = {False: (6, "#2b74b8"), True: (0, "#e0633f")}
"""The corner radius and colour of s-ops (False) and of selectors (True)."""


def program_view(program: rasp.RASPExpr) -> str:
    """A program: what it computes, its text, and its graph."""
    about = program.annotations.get("about", "")
    head = Markup("<p><b>{}</b> {}</p><pre>{}</pre>").format(program.name, about, program_text(program))
    return str(head + graph_svg(program))


def graph_svg(program: rasp.RASPExpr) -> Markup:
    """The expressions of a program as a drawing, each right of what it reads; selectors are diamonds."""
    graph = program_graph(program)
    if len(graph) > MOST_NODES:
        return Markup("")
    columns = [sorted(nodes) for _, nodes in sorted(_by_depth(graph).items())]
    places = {
        node: (WIDTH * (x + 0.5), HEIGHT * (y + 0.7))
        for x, nodes in enumerate(columns)
        for y, node in enumerate(nodes)
    }
    edges = Markup("").join(EDGE.format(*places[source], *places[target]) for source, target in graph.edges)
    nodes = Markup("").join(
        NODE.format(*places[node], *MARKS[facts["is_selector"]], facts["label"])
        for node, facts in graph.nodes(data=True)
    )
    width, height = WIDTH * len(columns), HEIGHT * (0.4 + max(map(len, columns)))
    return DRAWING.format(f"Graph of the program {program.name}", width, height, width, edges, nodes)


def _by_depth(graph: nx.DiGraph) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for node, depth in graph.nodes(data="depth"):
        found.setdefault(depth, []).append(node)
    return found
