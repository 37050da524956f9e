"""The figures of a comparison, interactive and self-contained."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from rasplens.compare.attention import ActiveHead, active_heads
from rasplens.compare.comparison import Comparison
from rasplens.compare.findings import CONTROLS
from rasplens.compare.panels import LAYOUT, Panel, grid, heatmap, names, signed_limits, ticks
from rasplens.compare.subject import Head
from rasplens.compile.drawing import draw_program, draw_residual_stream
from rasplens.model.circuits import full_ov_circuit, score_terms

EXAMPLES = 5
"""Inputs among which the attention figure lets one choose."""

MOST_DIRECTIONS = 120
"""Residual streams of more directions are not drawn."""


def decodability_figure(comparison: Comparison) -> go.Figure | None:
    """How far each variable stands above its best control, by hook point and position."""
    table = comparison.decodability
    if table.empty:
        return None
    table = table.assign(selectivity=table["score"] - table[CONTROLS].max(axis=1))
    variables = list(dict.fromkeys(table["variable"]))
    positions = comparison.pairing.task.positions
    panels = []
    for point in dict.fromkeys(table["point"]):
        cells = np.full((len(variables), len(positions)), np.nan)
        notes = np.full(cells.shape, "constant or unused", dtype=object)
        for entry in table[table["point"] == point].itertuples():
            at = variables.index(entry.variable), entry.position
            cells[at] = entry.selectivity
            notes[at] = (
                f"{entry.measure} {entry.score:.2f} (chance {entry.chance:.2f}, shuffled {entry.shuffled:.2f}, "
                f"untrained {entry.untrained:.2f})"
            )
        panels.append(Panel(point, cells, variables, positions, ("", "position"), (-1.0, 1.0), notes))
    return grid(panels, columns=1, panel_height=140 + 24 * len(variables))


def attention_figure(comparison: Comparison) -> go.Figure | None:
    """Each compiled head beside the learned head that attends most like it, on a few inputs."""
    matches = best_matches(comparison)
    heads = [active for active in active_heads(comparison.pairing) if active.head in matches]
    if not heads:
        return None
    examples = [_attention_panels(comparison, heads, matches, i) for i in range(EXAMPLES)]
    figure = grid(examples[0], columns=2, panel_height=360)
    for panels in examples[1:]:
        for i, panel in enumerate(panels):
            figure.add_trace(heatmap(panel).update(visible=False), row=i // 2 + 1, col=i % 2 + 1)
    menu = [_show_example(i, panels, len(examples)) for i, panels in enumerate(examples)]
    corner = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "pad": {"b": 24}}
    return figure.update_layout(updatemenus=[{"buttons": menu, **corner}])


def best_matches(comparison: Comparison) -> dict[Head, Head]:
    """For each compiled head the learned head that is matched with it, else the most similar one."""
    if comparison.attention.empty:
        return {}
    ranked = comparison.attention.sort_values(["matched", "similarity"], ascending=False)
    best = ranked.groupby(["compiled_layer", "compiled_head"])[["layer", "head"]].first()
    return {
        compiled: tuple(learned) for compiled, learned in zip(best.index, best.to_numpy().tolist(), strict=True)
    }


def _attention_panels(
    comparison: Comparison, heads: list[ActiveHead], matches: Mapping[Head, Head], example: int
) -> list[Panel]:
    task = comparison.pairing.task
    tokens = [task.token_names[i] for i in comparison.pairing.ids[example]]
    pairs = zip(task.positions, tokens, strict=True)
    labels = [name if name == token else f"{name}: {token}" for name, token in pairs]
    panels = []
    for active in heads:
        layer, index = matches[active.head]
        compiled = "L{}H{}".format(*active.head)
        learned = comparison.pairing.learned.pattern(layer)[example, index]
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


def head_figure(comparison: Comparison) -> go.Figure:
    """The accuracy that each head is worth, in both models."""
    figure = make_subplots(rows=1, cols=2, subplot_titles=list(comparison.heads), shared_yaxes=True)
    for column, frame in enumerate(comparison.heads.values(), start=1):
        labels = [f"L{row.layer}H{row.head}" for row in frame.itertuples()]
        for way, colour in (("zero", "#1f4e79"), ("mean", "#9dc3e6")):
            bars = go.Bar(x=labels, y=frame[way], name=way, marker_color=colour, showlegend=column == 1)
            figure.add_trace(bars, row=1, col=column)
    figure.update_yaxes(title_text="accuracy lost", col=1)
    return figure.update_layout(**LAYOUT, height=320)


def edge_figure(comparison: Comparison, way: str) -> go.Figure:
    """The accuracy that each attention edge is worth, the largest over layers, in both models."""
    positions = comparison.pairing.task.positions
    panels = []
    for side, frame in comparison.edges.items():
        cells = np.full((len(positions), len(positions)), np.nan)
        for (query, key), effect in frame.groupby(["query", "key"])[way].max().items():
            cells[query, key] = effect
        darkest = float(np.nanmax(cells, initial=1e-3))
        title = f"{side}: darkest = {darkest:.2f}"
        panels.append(Panel(title, cells, positions, positions, limits=(0.0, darkest)))
    return grid(panels, columns=2, panel_height=400)


def ov_figure(comparison: Comparison) -> go.Figure | None:
    """The full OV circuit of every learned head: the logits that attending to a token writes."""
    task, model = comparison.pairing.task, comparison.pairing.learned.model.to_transformer()
    if model.config.normalization != "none":
        return None
    panels = []
    for layer, head in comparison.pairing.learned.heads:
        circuit = full_ov_circuit(model, layer, head)
        axes = "attended token", "logit"
        panel = Panel(f"L{layer}H{head}", circuit, task.token_names, names(task.outputs), axes)
        panels.append(replace(panel, limits=signed_limits(circuit)))
    return grid(panels, columns=min(2, len(panels)), panel_height=420)


def qk_figure(comparison: Comparison) -> go.Figure | None:
    """The four terms of the attention score of every head that reads the embeddings (layer 0)."""
    task, model = comparison.pairing.task, comparison.pairing.learned.model.to_transformer()
    if model.config.smeared_keys or model.config.normalization != "none":
        return None
    tokens, positions = task.token_names, task.positions
    panels = []
    for head in range(model.config.n_heads):
        terms = score_terms(model, head)
        for title, cells, queries, keys in (
            ("token → token", terms.token_token, tokens, tokens),
            ("token → position", terms.token_position, tokens, positions),
            ("position → token", terms.position_token, positions, tokens),
            ("position → position", terms.position_position, positions, positions),
        ):
            panel = Panel(f"L0H{head}: {title}", cells, queries, keys, limits=signed_limits(cells))
            panels.append(panel)
    return grid(panels, columns=2, panel_height=400)


def residual_stream_figure(comparison: Comparison) -> go.Figure | None:
    """What every direction of the compiled model holds on one input; None if there are too many to read."""
    compiled = comparison.pairing.compiled
    if compiled.transformer.config.d_model > MOST_DIRECTIONS:
        return None
    return draw_residual_stream(compiled, comparison.pairing.task.sequences(comparison.pairing.ids[:1])[0])


def figures(comparison: Comparison) -> dict[str, go.Figure]:
    """Every figure that there is something to show in, by name."""
    makers: dict[str, Callable[[Comparison], go.Figure | None]] = {
        "program": lambda comparison: draw_program(comparison.pairing.compiled.program),
        "decodability": decodability_figure,
        "attention": attention_figure,
        "heads": head_figure,
        "edges_zero": lambda comparison: edge_figure(comparison, "zero"),
        "edges_mean": lambda comparison: edge_figure(comparison, "mean"),
        "ov": ov_figure,
        "qk": qk_figure,
        "residual_stream": residual_stream_figure,
    }
    made = {name: maker(comparison) for name, maker in makers.items()}
    return {name: figure for name, figure in made.items() if figure is not None}
