"""The figures of the residual stream: decodability, shared subspaces and similarity."""

import numpy as np
import plotly.graph_objects as go

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.subspaces.decodability import CONTROLS
from rasplens.compare.report.figures.labels import position_names, short_point
from rasplens.compare.report.figures.panels import Panel, grid
from rasplens.compare.report.sentences import table
from rasplens.compare.report.subspace_findings import last_overlaps
from rasplens.model.hook_points import when


def decodability_figure(comparison: Comparison) -> go.Figure | None:
    """How far each variable stands above its best control, by hook point and position."""
    found = table(comparison, "decodability")
    if found.empty:
        return None
    found = found.assign(selectivity=found["score"] - found[list(CONTROLS)].max(axis=1))
    variables = list(dict.fromkeys(found["variable"]))
    positions = position_names(comparison)
    panels = []
    for point in dict.fromkeys(found["point"]):
        cells = np.full((len(variables), len(positions)), np.nan)
        notes = np.full(cells.shape, "constant or not causally relevant", dtype=object)
        for entry in found[found["point"] == point].itertuples():
            at = variables.index(entry.variable), entry.position
            cells[at] = entry.selectivity
            notes[at] = (
                f"{entry.measure} {entry.score:.2f} (chance {entry.chance:.2f}, shuffled {entry.shuffled:.2f}, "
                f"untrained {entry.untrained:.2f})"
            )
        panels.append(Panel(point, cells, variables, positions, ("", "position"), (-1.0, 1.0), notes))
    return grid(panels, columns=1, panel_height=140 + 24 * len(variables))


def overlaps_figure(comparison: Comparison) -> go.Figure | None:
    """How far each two variables share a subspace, at the last hook point where both have one."""
    found = last_overlaps(comparison)
    if found.empty:
        return None
    variables = list(dict.fromkeys([*found["first"], *found["second"]]))
    cells = np.full((len(variables), len(variables)), np.nan)
    notes = np.full(cells.shape, "not both present", dtype=object)
    for row in found.itertuples():
        note = f"shared {row.shared:.2f} at {row.point}"
        if not np.isnan(row.correlation):
            note += f", correlation {row.correlation:.2f}, scale {row.scale:.2f}"
        for at in _both_ways(variables.index(row.first), variables.index(row.second)):
            cells[at], notes[at] = row.shared, note
    panel = Panel("", cells, variables, variables, ("", ""), notes=notes)
    figure = grid([panel], columns=1, panel_height=160 + 30 * len(variables))
    figure.update_yaxes(scaleanchor="x", constrain="domain").update_xaxes(constrain="domain")
    return _wide_labels(figure, variables)


def _both_ways(row: int, column: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (row, column), (column, row)


def similarity_figure(comparison: Comparison) -> go.Figure | None:
    """CKA of every hook point of the compiled model with every one of the learned model."""
    found = table(comparison, "similarity")
    if found.empty:
        return None
    sides = [sorted(set(found[side]), key=when) for side in ("compiled", "learned")]
    cells = np.full((len(sides[0]), len(sides[1])), np.nan)
    notes = np.full(cells.shape, "", dtype=object)
    for row in found.itertuples():
        at = sides[0].index(row.compiled), sides[1].index(row.learned)
        cells[at] = row.cka
        notes[at] = (
            f"CKA {row.cka:.2f} (shuffled {row.cka_shuffled:.2f}), CCA {row.cca:.2f} ({row.cca_shuffled:.2f}), "
            f"Procrustes {row.procrustes:.2f} ({row.procrustes_shuffled:.2f})"
        )
    rows, columns = [[short_point(point) for point in points] for points in sides]
    panel = Panel("", cells, rows, columns, ("compiled", "learned"), notes=notes)
    return _wide_labels(grid([panel], columns=1, panel_height=140 + 24 * len(rows)), rows)


def _wide_labels(figure: go.Figure, labels: list[str]) -> go.Figure:
    """The figure with a margin that the labels of its rows fit in."""
    return figure.update_layout(margin={"l": min(240, 50 + 7 * max(map(len, labels))), "t": 20})
