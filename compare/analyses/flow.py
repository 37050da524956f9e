"""The information-flow figure: where attention moves what, layer by layer, on one input."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rasplens.compare.analyses.lens import answer_name, lens_codes
from rasplens.compare.evidence.ablation.edges import edge_effects
from rasplens.compare.report.figures.panels import LAYOUT, escape
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.hook_points import act_name

LEAST = 0.05
"""Attention below this is not drawn."""

MARGIN = 0.16
"""Gap between a node and the arrows that end there."""

ARROW, DISPENSABLE, STEP = "#b03a2e", "#e6bfb9", "#c8ccd0"


@dataclass(frozen=True)
class _Arrow:
    """An arrow from a key before a layer to a query after it.

    Attributes:
        layer: The layer.
        key: The position where it begins.
        query: The position where it ends.
        colour: Its colour.
        width: Its width, in pixels.
        note: The text that the pointer shows; empty for none.
        drop: The accuracy drop that stands beside it; None for none.
    """

    layer: int
    key: int
    query: int
    colour: str
    width: float
    note: str = ""
    drop: float | None = None


def flow_figure(studied: StudiedModel, example: int = 0, effects: pd.DataFrame | None = None) -> go.Figure:
    """Nodes are positions before and after each layer; arrows are attention on one input.

    The lowest nodes show the tokens, the others the answer that the logit lens reads there. An arrow is as thick
    as the attention is strong, pale where the edge has no ablation effect, and says its accuracy drop over all
    inputs.
    Source: Farrell et al. 2025, figure 1.

    Args:
        studied: The model on some inputs.
        example: Which of them to draw.
        effects: What `rasplens.compare.evidence.ablation.effects.edge_effects` gave, if it is known already.
    """
    task = studied.task
    effects = edge_effects(studied).table if effects is None else effects
    drops = {(edge.layer, edge.query, edge.key): float(edge.zero) for edge in effects.itertuples()}
    figure = go.Figure()
    for layer in range(studied.n_layers):
        attention = studied.pattern(layer)[example, studied.heads_of(layer)].max(axis=0, initial=0.0)
        for position in range(studied.n_pos):
            _draw(figure, _Arrow(layer, position, position, STEP, 1.0))
        for query, key in np.argwhere(attention > LEAST).tolist():
            weight = float(attention[query, key])
            note = f"{task.positions[key]} → {task.positions[query]}: attention {weight:.2f}"
            if (layer, query, key) in drops:
                note += f", accuracy drop {drops[layer, query, key]:.3f}"
            effect = drops.get((layer, query, key))
            colour = ARROW if effect else DISPENSABLE
            _draw(figure, _Arrow(layer, key, query, colour, 1 + 4 * weight, note, effect))
    rows = [[task.token_names[i] for i in studied.ids[example].tolist()]]
    for layer in range(studied.n_layers):
        codes = lens_codes(studied, act_name("resid_post", layer))[example]
        rows.append([answer_name(task, code) for code in codes.tolist()])
    for height, labels in enumerate(rows):
        _nodes(figure, height, labels)
    names = ["tokens", *(f"after layer {layer}" for layer in range(studied.n_layers))]
    across = {"tickvals": list(range(studied.n_pos)), "ticktext": [escape(name) for name in task.positions]}
    figure.update_xaxes(**across, showgrid=False, zeroline=False, range=[-0.5, studied.n_pos - 0.5])
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        showgrid=False,
        zeroline=False,
        range=[-0.3, len(rows) - 0.7],
    )
    return figure.update_layout(**LAYOUT, height=160 + 150 * studied.n_layers).update_layout(margin_l=100)


def _nodes(figure: go.Figure, height: int, labels: list[str]) -> None:
    figure.add_trace(
        go.Scatter(
            x=list(range(len(labels))),
            y=[height] * len(labels),
            mode="markers+text",
            text=[escape(label) for label in labels],
            marker={"size": 34, "color": "white", "line": {"color": "#1f4e79", "width": 1.5}},
            hoverinfo="text",
            showlegend=False,
        )
    )


def _draw(figure: go.Figure, arrow: _Arrow) -> None:
    """Add an arrow to the figure."""
    figure.add_annotation(
        x=arrow.query,
        y=arrow.layer + 1 - MARGIN,
        ax=arrow.key,
        ay=arrow.layer + MARGIN,
        axref="x",
        ayref="y",
        arrowhead=2,
        arrowsize=0.6,
        arrowwidth=arrow.width,
        arrowcolor=arrow.colour,
        text="",
    )
    if arrow.note:
        shown = "" if arrow.drop is None else f"−{arrow.drop:.2f}"
        middle = {"x": [0.5 * (arrow.key + arrow.query)], "y": [arrow.layer + 0.5]}
        figure.add_trace(
            go.Scatter(
                **middle,
                mode="markers+text",
                text=[shown],
                textposition="middle right",
                textfont={"size": 11, "color": arrow.colour},
                marker={"size": 5, "color": arrow.colour},
                hovertext=[escape(arrow.note)],
                hoverinfo="text",
                showlegend=False,
            )
        )
