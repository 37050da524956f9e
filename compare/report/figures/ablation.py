"""The figures of ablation effects: heads, heads by position, and attention edges."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.measurement import METHODS, Method
from rasplens.compare.evidence.ablation.profiles import edge_profile
from rasplens.compare.report.figures.labels import head_names, position_names
from rasplens.compare.report.figures.panels import DARK, LAYOUT, LEGEND, LIGHT, MIDDLE, Panel, grid


def head_figure(comparison: Comparison) -> go.Figure | None:
    """The ablation effect of each head, in both models."""
    sides = _with_rows(comparison, "heads")
    if not sides:
        return None
    figure = make_subplots(rows=1, cols=len(sides), subplot_titles=list(sides), shared_yaxes=True)
    for column, frame in enumerate(sides.values(), start=1):
        labels = head_names(frame)
        for method, colour in zip(METHODS, (DARK, MIDDLE, LIGHT), strict=True):
            bars = go.Bar(x=labels, y=frame[method], name=method, marker_color=colour, showlegend=column == 1)
            figure.add_trace(bars, row=1, col=column)
    figure.update_yaxes(title_text="accuracy drop", col=1)
    return figure.update_layout(**LAYOUT, height=340, legend={**LEGEND, "y": 1.1})


def head_position_figure(comparison: Comparison, method: Method) -> go.Figure | None:
    """The ablation effect of each head at each position, in both models."""
    positions = position_names(comparison)
    panels = []
    for side, frame in _with_rows(comparison, "head_positions").items():
        heads = list(dict.fromkeys(head_names(frame)))
        cells = np.full((len(heads), len(positions)), np.nan)
        for label, position, effect in zip(head_names(frame), frame["position"], frame[method], strict=True):
            cells[heads.index(label), position] = effect
        panels.append(_drop_panel(side, cells, heads, positions, ("", "position")))
    most = max((len(panel.rows) for panel in panels), default=0)
    return grid(panels, columns=2, panel_height=160 + 24 * most) if panels else None


def edge_figure(comparison: Comparison, method: Method) -> go.Figure | None:
    """The ablation effect of each attention edge, the largest over layers, in both models."""
    positions = position_names(comparison)
    panels = []
    for side, frame in _with_rows(comparison, "edges").items():
        cells = np.full((len(positions), len(positions)), np.nan)
        for (query, key), effect in edge_profile(frame, method).items():
            cells[query, key] = effect
        panels.append(_drop_panel(side, cells, positions, positions, ("query", "key")))
    return grid(panels, columns=2, panel_height=400) if panels else None


def _drop_panel(
    side: str, cells: np.ndarray, rows: Sequence[str], columns: Sequence[str], axes: tuple[str, str]
) -> Panel:
    """Accuracy drops, on a scale of their own: models differ in how far they can fall."""
    darkest = float(np.nanmax(cells, initial=1e-3))
    return Panel(side, cells, rows, columns, axes, limits=(0.0, darkest))


def _with_rows(comparison: Comparison, name: str) -> dict[str, pd.DataFrame]:
    return {side: frame for side, frame in comparison.by_side(name).items() if len(frame)}
