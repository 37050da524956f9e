"""Grids of heatmaps with labelled axes: what the figures of a report are made of."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

SEQUENTIAL, DIVERGING = "Blues", "RdBu"

MOST_TICKS = 26
"""An axis with more entries than this labels only some of them."""

LAYOUT = {
    "template": "plotly_white",
    "margin": {"l": 60, "r": 60, "t": 60, "b": 50},
    "font": {"family": "system-ui, sans-serif", "size": 12},
}

DARK, MIDDLE, LIGHT, GREY = "#2b74b8", "#7fb2de", "#bcd6ee", "#8f979f"
ACTIVE = "#2e8b7a"
"""Colours that are distinguishable on white and on black."""

LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


@dataclass(frozen=True, eq=False)
class Panel:
    """One heatmap.

    Attributes:
        title: Above it.
        cells: `[row, column]`; NaN stays blank.
        rows: The name of each row, from the top.
        columns: The name of each column.
        axes: What rows and columns are.
        limits: The values at the ends of the colour scale; if the lower one is negative, zero is white.
        notes: What to show for each cell when it is pointed at; by default its value.
    """

    title: str
    cells: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    axes: tuple[str, str] = ("query", "key")
    limits: tuple[float, float] = (0.0, 1.0)
    notes: np.ndarray | None = None


def signed_limits(cells: np.ndarray) -> tuple[float, float]:
    """Limits symmetric around zero that hold every cell."""
    largest = float(np.abs(cells).max(initial=0)) or 1.0
    return -largest, largest


def grid(panels: Sequence[Panel], columns: int, panel_height: int) -> go.Figure:
    """Panels in rows of `columns`, from the top left, each with its scale of colours at its right."""
    rows = -(-len(panels) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[escape(panel.title) for panel in panels],
        horizontal_spacing=0.3 / columns if columns > 1 else 0,
        vertical_spacing=0.36 / rows if rows > 1 else 0,
    )
    for i, panel in enumerate(panels):
        place = {"row": i // columns + 1, "col": i % columns + 1}
        figure.add_trace(heatmap(panel), **place)
        subplot = figure.get_subplot(**place)
        figure.data[-1].colorbar = _scale_beside(subplot.xaxis.domain, subplot.yaxis.domain)
        figure.update_xaxes(title_text=panel.axes[1], **ticks(panel.columns), **place)
        figure.update_yaxes(title_text=panel.axes[0], autorange="reversed", **ticks(panel.rows), **place)
    # The template would draw lines through the first row and column, at 0.
    figure.update_xaxes(zeroline=False).update_yaxes(zeroline=False)
    return figure.update_layout(**LAYOUT, height=80 + panel_height * rows)


def _scale_beside(width: tuple[float, float], height: tuple[float, float]) -> dict[str, object]:
    """A slim scale of colours right of a panel, from the shares of the figure that the panel takes."""
    return {
        "x": width[1] + 0.005,
        "xanchor": "left",
        "y": sum(height) / 2,
        "len": height[1] - height[0],
        "thickness": 8,
        "outlinewidth": 0,
        "nticks": 4,
        "tickfont": {"size": 10},
    }


def heatmap(panel: Panel) -> go.Heatmap:
    """The trace of a panel, on axes counted from 0."""
    low, high = panel.limits
    notes = np.round(panel.cells.astype(float), 3) if panel.notes is None else panel.notes
    rows, columns = [escape(name) for name in panel.rows], [escape(name) for name in panel.columns]
    text = [[f"{row}, {column}: {note}" for column, note in zip(columns, line, strict=True)]
            for row, line in zip(rows, notes, strict=True)]  # fmt: skip
    return go.Heatmap(
        z=np.round(panel.cells.astype(float), 4),
        text=text,
        hovertemplate="%{text}<extra></extra>",
        colorscale=DIVERGING if low < 0 else SEQUENTIAL,
        zmin=low,
        zmax=high,
    )


def ticks(names: Sequence[str]) -> dict[str, object]:
    """Axis settings that put names on an axis counted from 0, as many as fit."""
    step = -(-len(names) // MOST_TICKS)
    return {
        "tickvals": list(range(0, len(names), step)),
        "ticktext": [escape(name) for name in names[::step]],
        "showgrid": False,
    }


def escape(text: object) -> str:
    """Text as plotly shows it literally: it would read tags as markup."""
    return html.escape(str(text))


def names(values: Iterable[object]) -> list[str]:
    """Values as names."""
    return [str(value) for value in values]
