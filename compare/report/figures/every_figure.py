"""The figures of a comparison, interactive and self-contained."""

from collections.abc import Callable
from functools import partial

import plotly.graph_objects as go

from rasplens.compare.axes import AXES
from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.measurement import METHODS
from rasplens.compare.report.figures.ablation import edge_figure, head_figure, head_position_figure
from rasplens.compare.report.figures.claims import claims_figure
from rasplens.compare.report.figures.models import ov_figure, program_figure, qk_figure, residual_stream_figure
from rasplens.compare.report.figures.panels import ACTIVE, DARK, GREY, LAYOUT, LEGEND, LIGHT, MIDDLE, escape
from rasplens.compare.report.figures.subspaces import decodability_figure, overlaps_figure, similarity_figure
from rasplens.compare.report.sentences import table

DESCRIBED = {
    "claims": "Every claim of the program with its interval and its control",
    "evidence": "The five axes, each with its interval",
    "program": "The expressions of the program as a graph",
    "interchange": "Interchange score of each variable beside its controls",
    "heads": "Accuracy drop when each head is ablated, in both models",
    **{f"head_positions_{method}": f"Accuracy drop by head and position, {method} ablation" for method in METHODS},
    **{f"edges_{method}": f"Accuracy drop by attention edge, {method} ablation" for method in METHODS},
    "decodability": "How well each variable can be decoded, by hook point and position",
    "overlaps": "How far each pair of variables shares a subspace",
    "similarity": "CKA of the hook points of both models",
    "ov": "OV circuits of the learned model",
    "qk": "QK circuits of the learned model",
    "residual_stream": "The residual stream of the compiled model on one input",
}
"""Text alternative of each figure."""


def figures(comparison: Comparison) -> dict[str, go.Figure]:
    """Every figure that there is something to show in, by name."""
    makers: dict[str, Callable[[Comparison], go.Figure | None]] = {
        "claims": claims_figure,
        "evidence": evidence_figure,
        "program": program_figure,
        "interchange": interchange_figure,
        "heads": head_figure,
        **{f"head_positions_{method}": partial(head_position_figure, method=method) for method in METHODS},
        **{f"edges_{method}": partial(edge_figure, method=method) for method in METHODS},
        "decodability": decodability_figure,
        "overlaps": overlaps_figure,
        "similarity": similarity_figure,
        "ov": ov_figure,
        "qk": qk_figure,
        "residual_stream": residual_stream_figure,
    }
    made = {name: maker(comparison) for name, maker in makers.items()}
    return {name: figure for name, figure in made.items() if figure is not None}


def evidence_figure(comparison: Comparison) -> go.Figure | None:
    """The five axes on one scale, each with its interval."""
    if not comparison.axes:
        return None
    by_name = {axis.name: axis for axis in comparison.axes}
    axes = [by_name[name] for name in AXES if name in by_name]
    scored = [axis for axis in axes if axis.has_score]
    points = go.Scatter(
        x=[axis.score for axis in scored],
        y=[axis.name for axis in scored],
        error_x={
            "array": [axis.high - axis.score for axis in scored],
            "arrayminus": [axis.score - axis.low for axis in scored],
            "symmetric": False,
            "thickness": 2,
        },
        text=[f"{axis.score:.2f} ({axis.low:.2f} to {axis.high:.2f}): {escape(axis.note)}" for axis in scored],
        hovertemplate="%{text}<extra></extra>",
        mode="markers",
        marker={"size": 11, "color": DARK},
    )
    figure = go.Figure(points)
    for axis in axes:
        if not axis.has_score:
            figure.add_annotation(x=0.5, y=axis.name, text="no score", showarrow=False, font={"color": GREY})
    order = [axis.name for axis in axes]
    figure.update_yaxes(
        categoryorder="array", categoryarray=order, range=[len(order) - 0.5, -0.5], type="category"
    )
    ends = {"tickvals": [0, 0.25, 0.5, 0.75, 1], "ticktext": ["controls", "", "0.5", "", "compiled"]}
    figure.update_xaxes(range=[-0.06, 1.06], zeroline=False, **ends)
    for end in (0, 1):
        figure.add_vline(x=end, line={"color": GREY, "dash": "dot", "width": 1})
    return figure.update_layout({**LAYOUT, "margin": {"l": 90, "r": 30, "t": 20, "b": 40}}, height=260)


def interchange_figure(comparison: Comparison) -> go.Figure | None:
    """The interchange score of each variable, beside its controls."""
    found = table(comparison, "interchange")
    if found.empty:
        return None
    labels = [escape(name) for name in found["variable"]]
    notes = [
        f"{row.point}, {row.method}, rank {row.rank:.1f}: IIA {row.iia:.2f}, specificity {row.specificity:.2f}; "
        f"dormant part {row.dormant:.2f}"
        for row in found.itertuples()
    ]
    figure = go.Figure()
    for column, title, colour in (
        ("score", "learned model", DARK),
        ("active", "its active part", ACTIVE),
        ("full_stream", "full-stream patching", MIDDLE),
        ("random", "random subspaces", LIGHT),
        ("untrained", "untrained model", GREY),
    ):
        hover = f"%{{x}}, {title}: %{{y:.2f}}<br>%{{customdata}}<extra></extra>"
        if column != "score":
            hover = f"%{{x}}, {title}: %{{y:.2f}}<extra></extra>"
        bars = go.Bar(x=labels, y=found[column], name=title, marker_color=colour, customdata=notes)
        figure.add_trace(bars.update(hovertemplate=hover))
    figure.update_yaxes(range=[0, 1], title_text="score")
    figure.update_xaxes(type="category")
    return figure.update_layout(**LAYOUT, height=340, legend=LEGEND)
