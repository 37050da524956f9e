"""Figures of a compression."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rasplens.learned.compressor.compressed_model import CompressedModel
from rasplens.learned.compressor.evaluation import baseline

if TYPE_CHECKING:
    import plotly.graph_objects as go

CELL = 22
"""Pixels per feature."""

LEAST_LOSS = 1e-6
"""Smaller losses are drawn here: the axis is logarithmic."""

LINES = (
    ("token", "answers right", "#1f77b4", "solid"),
    ("cosine", "layers' cosine", "#2ca02c", "solid"),
    ("pca_token", "answers right, PCA", "#999999", "dot"),
    ("total", "loss (right axis)", "#ff7f0e", "dash"),
)
"""Columns of a sweep, their names, colours and dashes."""


def draw_overlap(model: CompressedModel) -> "go.Figure":
    """How much of each feature is read where each one was written, beside that of principal components: `W Wᵀ`.

    Source: Lindner et al. 2023, figure 7.
    """
    import html

    from plotly.subplots import make_subplots

    sides = {f"compressed to {model.d}": model, f"{model.d} principal components": baseline(model)}
    labels = [html.escape(label) for label in model.labels]
    figure = make_subplots(rows=1, cols=2, subplot_titles=list(sides), shared_yaxes=True)
    most = max(float(np.abs(side.overlap).max()) for side in sides.values())
    places = list(range(len(labels)))
    for column, side in enumerate(sides.values(), start=1):
        figure.add_heatmap(
            z=np.round(side.overlap, 4), x=places, y=places, zmin=-most, zmax=most, colorscale="RdBu_r",
            showscale=column == 2, row=1, col=column,
        )  # fmt: skip
    figure.update_xaxes(tickvals=places, ticktext=labels, tickangle=-90, title_text="read")
    figure.update_yaxes(tickvals=places, ticktext=labels, autorange="reversed")
    figure.update_yaxes(title_text="written", col=1)
    side_length = 160 + CELL * len(labels)
    figure.update_layout(template="simple_white", width=80 + 2 * side_length, height=60 + side_length)
    return figure


def draw_sweep(table: pd.DataFrame) -> "go.Figure":
    """Answers, loss and faithfulness against the width, a panel for each program, with the knee; see `sweep`.

    The loss, of the answers and of the layers together, has the axis on the right.
    """
    from plotly.subplots import make_subplots

    programs = list(dict.fromkeys(table["program"]))
    columns = min(4, len(programs))
    rows = -(-len(programs) // columns)
    specs = [[{"secondary_y": True}] * columns for _ in range(rows)]
    figure = make_subplots(rows, columns, subplot_titles=programs, specs=specs, horizontal_spacing=0.08)
    table = table.assign(total=(table["output_loss"] + table["loss"]).clip(lower=LEAST_LOSS))
    for i, program in enumerate(programs):
        own, place = table[table["program"] == program], {"row": i // columns + 1, "col": i % columns + 1}
        for column, name, color, dash in LINES:
            figure.add_scatter(
                x=own["d"], y=own[column], name=name, legendgroup=name, showlegend=i == 0, mode="lines+markers",
                line={"color": color, "dash": dash}, secondary_y=column == "total", **place,
            )  # fmt: skip
        if own["is_knee"].any():
            knee = float(own.loc[own["is_knee"], "d"].iloc[0])
            figure.add_vline(x=knee, line={"dash": "dash", "width": 1, "color": "#d62728"}, **place)
    figure.update_yaxes(range=[min(0.0, float(table["cosine"].min())) - 0.05, 1.05], secondary_y=False)
    least, most = (float(np.log10(table["total"].agg(end))) for end in ("min", "max"))
    powers = {"tickvals": [1e-6, 1e-3, 1], "ticktext": ["10⁻⁶", "10⁻³", "1"]}
    figure.update_yaxes(type="log", range=[least - 0.5, most + 0.5], secondary_y=True, **powers)
    figure.update_xaxes(title_text="d")
    figure.update_layout(template="simple_white", width=290 * columns + 160, height=200 * rows + 80)
    return figure
