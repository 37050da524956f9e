"""Figures of a program and of what its compiled model holds: for notebooks and reports."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from rasplens.compile import rasp
from rasplens.compile.anatomy import Anatomy
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.program_graph import program_graph
from rasplens.model.config import residual_points

if TYPE_CHECKING:
    import plotly.graph_objects as go

ROW, COLUMN = 16, 34
"""Pixels per direction and per position."""


def draw_program(program: rasp.RASPExpr) -> "go.Figure":
    """A figure of a program's expressions, each right of what it reads; selectors as diamonds."""
    import plotly.graph_objects as go

    graph = program_graph(program)
    places = nx.multipartite_layout(graph, subset_key="depth")
    figure = go.Figure()
    for source, target in graph.edges:
        (x0, y0), (x1, y1) = places[source], places[target]
        figure.add_annotation(
            x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y",
            showarrow=True, arrowhead=2, arrowcolor="#999", standoff=14, startstandoff=10,
        )  # fmt: skip
    for is_selector, symbol in ((False, "circle"), (True, "diamond")):
        nodes = [node for node, facts in graph.nodes(data=True) if facts["is_selector"] is is_selector]
        figure.add_scatter(
            x=[places[node][0] for node in nodes],
            y=[places[node][1] for node in nodes],
            text=[graph.nodes[node]["label"] for node in nodes],
            mode="markers+text",
            textposition="top center",
            marker={"size": 14, "symbol": symbol},
            name="selectors" if is_selector else "s-ops",
        )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_layout(template="simple_white", margin={"l": 40, "r": 40, "t": 30, "b": 10})
    return figure


def draw_residual_stream(compiled: Anatomy, tokens: Sequence[Value]) -> "go.Figure":
    """A figure of what every direction holds at every position of one input, layer by layer.

    Source: Lindner et al. 2023, figure 2.

    Raises:
        RaspLensError: If the sequence does not fit the model.
    """
    from plotly.subplots import make_subplots

    ids = compiled.encode([tokens])
    _, cache = compiled.transformer.run_with_cache(ids)
    points = residual_points(compiled.transformer.config)
    columns = [*(["BOS"] if compiled.has_bos else []), *map(str, tokens)]
    titles = [point.removeprefix("blocks.").replace(".hook_", " ") for point in points]
    labels = direction_labels(compiled)
    figure = make_subplots(rows=1, cols=len(points), subplot_titles=titles, shared_yaxes=True)
    most = max(float(np.abs(cache[point]).max()) for point in points)
    for place, point in enumerate(points, start=1):
        figure.add_heatmap(
            z=cache[point][0].T, y=labels, x=[f"{i} {token}" for i, token in enumerate(columns)],
            zmin=-most, zmax=most, colorscale="RdBu_r", showscale=place == len(points), row=1, col=place,
        )  # fmt: skip
    figure.update_yaxes(autorange="reversed", tickmode="linear")
    figure.update_layout(
        template="simple_white",
        width=160 + len(points) * (60 + COLUMN * len(columns)),
        height=120 + ROW * len(labels),
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
    )
    return figure


def direction_labels(compiled: Anatomy) -> list[str]:
    """The labels of all directions of the residual stream, as `variable:value`; numbers by their name."""
    labels = ["one"] * compiled.transformer.config.d_model
    if compiled.has_bos:
        labels[int(np.flatnonzero(compiled.transformer.W_E[len(compiled.inputs.vocab)])[-1])] = "BOS"
    if compiled.has_pad:
        labels[-1] = "padding"
    for variable in compiled.variables.values():
        if variable.is_view:
            continue
        parts = [f"{variable.name}:{value}" for value in variable.values]
        if variable.encoding is Encoding.NUMERICAL:
            parts = [variable.name, f"{variable.name} is defined"]
        for label, direction in zip(parts, variable.directions, strict=False):
            labels[direction] = label
    return labels
