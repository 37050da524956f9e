"""The attention figure: each compiled head beside the learned head that it is matched with."""

from collections.abc import Mapping

import plotly.graph_objects as go

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.attention.heads import ActiveHead, active_heads
from rasplens.compare.models.pairing import Pairing
from rasplens.compare.models.studied_model import Head
from rasplens.compare.report.figures.panels import Panel, grid, heatmap, ticks
from rasplens.compare.report.sentences import table

EXAMPLES = 5
"""Inputs among which the attention figure lets one choose."""


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
