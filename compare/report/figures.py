"""The figures of a comparison, interactive and self-contained."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.effects import METHODS, Method
from rasplens.compare.evidence.ablation.profiles import edge_profile
from rasplens.compare.evidence.attention.heads import ActiveHead, active_heads
from rasplens.compare.evidence.axes import AXES
from rasplens.compare.evidence.subspaces.decodability import CONTROLS
from rasplens.compare.models.pairing import Pairing
from rasplens.compare.models.studied_model import Head
from rasplens.compare.report.findings import depth_of, last_overlaps, table
from rasplens.compare.report.model_figures import ov_figure, program_figure, qk_figure, residual_stream_figure
from rasplens.compare.report.panels import LAYOUT, Panel, escape, grid, heatmap, ticks

EXAMPLES = 5
"""Inputs among which the attention figure lets one choose."""

DARK, MIDDLE, LIGHT, GREY = "#1f4e79", "#5b9bd5", "#bdd7ee", "#a6a6a6"
ACTIVE = "#2e8b7a"

LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


def evidence_figure(comparison: Comparison) -> go.Figure:
    """The five axes on one scale, each with its interval."""
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
    figure.update_yaxes(range=[0, 1], title_text="score: the smaller of IIA and specificity")
    figure.update_xaxes(type="category")
    return figure.update_layout(**LAYOUT, height=340, legend=LEGEND)


def decodability_figure(comparison: Comparison) -> go.Figure | None:
    """How far each variable stands above its best control, by hook point and position."""
    found = table(comparison, "decodability")
    if found.empty:
        return None
    found = found.assign(selectivity=found["score"] - found[list(CONTROLS)].max(axis=1))
    variables = list(dict.fromkeys(found["variable"]))
    positions = _positions(comparison)
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
    notes = np.full(cells.shape, "not both there", dtype=object)
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
    sides = [sorted(set(found[side]), key=depth_of) for side in ("compiled", "learned")]
    cells = np.full((len(sides[0]), len(sides[1])), np.nan)
    notes = np.full(cells.shape, "", dtype=object)
    for row in found.itertuples():
        at = sides[0].index(row.compiled), sides[1].index(row.learned)
        cells[at] = row.cka
        notes[at] = (
            f"CKA {row.cka:.2f} (shuffled {row.cka_shuffled:.2f}), CCA {row.cca:.2f} ({row.cca_shuffled:.2f}), "
            f"Procrustes {row.procrustes:.2f} ({row.procrustes_shuffled:.2f})"
        )
    rows, columns = [[_short(point) for point in points] for points in sides]
    panel = Panel("", cells, rows, columns, ("compiled", "learned"), notes=notes)
    return _wide_labels(grid([panel], columns=1, panel_height=140 + 24 * len(rows)), rows)


def _short(point: str) -> str:
    return point.removeprefix("blocks.").replace(".hook_", " ")


def _wide_labels(figure: go.Figure, labels: list[str]) -> go.Figure:
    """The figure with a margin that the labels of its rows fit in."""
    return figure.update_layout(margin={"l": min(240, 50 + 7 * max(map(len, labels))), "t": 20})


def _positions(comparison: Comparison) -> tuple[str, ...]:
    """The names of the task's positions; their numbers for a comparison that was loaded."""
    if comparison.pairing is not None:
        return comparison.pairing.task.positions
    used = [
        frame[column].max()
        for frame in comparison.tables.values()
        for column in ("position", "query", "key")
        if column in frame and len(frame)
    ]
    return tuple(map(str, range(int(max(used, default=-1)) + 1)))


def attention_figure(comparison: Comparison) -> go.Figure | None:
    """Each compiled head beside the learned head that attends most like it, on a few inputs."""
    pairing = comparison.pairing
    if pairing is None:
        return None
    matches = best_matches(comparison)
    heads = [active for active in active_heads(pairing) if active.head in matches]
    if not heads:
        return None
    examples = [_attention_panels(pairing, heads, matches, i) for i in range(EXAMPLES)]
    figure = grid(examples[0], columns=2, panel_height=360)
    for panels in examples[1:]:
        for i, panel in enumerate(panels):
            figure.add_trace(heatmap(panel).update(visible=False), row=i // 2 + 1, col=i % 2 + 1)
    menu = [_show_example(i, panels, len(examples)) for i, panels in enumerate(examples)]
    corner = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "pad": {"b": 24}}
    return figure.update_layout(updatemenus=[{"buttons": menu, **corner}])


def best_matches(comparison: Comparison) -> dict[Head, Head]:
    """For each compiled head the learned head that is matched with it, else the most similar one."""
    found = table(comparison, "attention")
    if found.empty:
        return {}
    ranked = found.sort_values(["matched", "similarity"], ascending=False)
    best = ranked.groupby(["compiled_layer", "compiled_head"])[["layer", "head"]].first()
    return {
        compiled: tuple(learned) for compiled, learned in zip(best.index, best.to_numpy().tolist(), strict=True)
    }


def _attention_panels(
    pairing: Pairing, heads: list[ActiveHead], matches: Mapping[Head, Head], example: int
) -> list[Panel]:
    task = pairing.task
    tokens = [task.token_names[i] for i in pairing.ids[example]]
    pairs = zip(task.positions, tokens, strict=True)
    labels = [name if name == token else f"{name}: {token}" for name, token in pairs]
    panels = []
    for active in heads:
        layer, index = matches[active.head]
        compiled = "L{}H{}".format(*active.head)
        learned = pairing.learned.pattern(layer)[example, index]
        panels += [
            Panel(f"compiled {compiled}: {active.variable}", active.pattern[example], labels, labels),
            Panel(f"learned L{layer}H{index}", learned, labels, labels),
        ]
    return panels


def _show_example(example: int, panels: list[Panel], n_examples: int) -> dict[str, object]:
    """A menu entry that shows one example's traces and puts its tokens on the axes."""
    visible = [i == example for i in range(n_examples) for _ in panels]
    axes = {}
    for i, panel in enumerate(panels):
        number = "" if i == 0 else str(i + 1)
        axes[f"xaxis{number}.ticktext"] = ticks(panel.columns)["ticktext"]
        axes[f"yaxis{number}.ticktext"] = ticks(panel.rows)["ticktext"]
    return {"label": f"input {example + 1}", "method": "update", "args": [{"visible": visible}, axes]}


def head_figure(comparison: Comparison) -> go.Figure | None:
    """The ablation effect of each head, in both models."""
    sides = _with_rows(comparison, "heads")
    if not sides:
        return None
    figure = make_subplots(rows=1, cols=len(sides), subplot_titles=list(sides), shared_yaxes=True)
    for column, frame in enumerate(sides.values(), start=1):
        labels = _heads(frame)
        for method, colour in zip(METHODS, (DARK, MIDDLE, LIGHT), strict=True):
            bars = go.Bar(x=labels, y=frame[method], name=method, marker_color=colour, showlegend=column == 1)
            figure.add_trace(bars, row=1, col=column)
    figure.update_yaxes(title_text="accuracy drop", col=1)
    return figure.update_layout(**LAYOUT, height=340, legend={**LEGEND, "y": 1.1})


def head_position_figure(comparison: Comparison, method: Method) -> go.Figure | None:
    """The ablation effect of each head at each position, in both models."""
    positions = _positions(comparison)
    panels = []
    for side, frame in _with_rows(comparison, "head_positions").items():
        heads = list(dict.fromkeys(_heads(frame)))
        cells = np.full((len(heads), len(positions)), np.nan)
        for label, position, effect in zip(_heads(frame), frame["position"], frame[method], strict=True):
            cells[heads.index(label), position] = effect
        panels.append(_drop_panel(side, cells, heads, positions, ("", "position")))
    most = max((len(panel.rows) for panel in panels), default=0)
    return grid(panels, columns=2, panel_height=160 + 24 * most) if panels else None


def edge_figure(comparison: Comparison, method: Method) -> go.Figure | None:
    """The ablation effect of each attention edge, the largest over layers, in both models."""
    positions = _positions(comparison)
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
    return Panel(f"{side}: darkest = {darkest:.2f}", cells, rows, columns, axes, limits=(0.0, darkest))


def _with_rows(comparison: Comparison, name: str) -> dict[str, pd.DataFrame]:
    return {side: frame for side, frame in comparison.by_side(name).items() if len(frame)}


def _heads(frame: pd.DataFrame) -> list[str]:
    return [f"L{layer}H{head}" for layer, head in zip(frame["layer"], frame["head"], strict=True)]


def figures(comparison: Comparison) -> dict[str, go.Figure]:
    """Every figure that there is something to show in, by name."""
    makers: dict[str, Callable[[Comparison], go.Figure | None]] = {
        "evidence": evidence_figure,
        "program": program_figure,
        "interchange": interchange_figure,
        "attention": attention_figure,
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
