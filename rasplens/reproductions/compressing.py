"""The models that compress pairs of digits into one token: Farrell et al. 2025, “Order by Scale”."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import plotly.graph_objects as go

from rasplens.compare.analyses import (
    attention_leakage,
    average_attention,
    critical_edges,
    flow_figure,
    logit_terms,
    position_separability,
)
from rasplens.model import Transformer
from rasplens.reproductions.reproduction import Finding, Reproduction, at_least, on_held_out
from rasplens.tasks import Task

FARRELL = "Farrell et al. 2025, “Order by Scale”"


def _compression_findings(
    token: float, both: float, averaged: str
) -> Callable[[Task, Transformer], list[Finding]]:
    """The findings about a compression model, whose published accuracies are given."""

    def findings(task: Task, model: Transformer) -> list[Finding]:
        studied = on_held_out(task, model)
        accuracy, average, critical = task.accuracy(model), average_attention(studied), critical_edges(studied)
        leaked = float(attention_leakage(studied, task.visible)["leaked"].max())
        separable = position_separability(studied)["auc"].iloc[-1]
        difference = logit_terms(studied).difference
        n_critical = int(critical.table["critical"].sum())
        return [
            at_least("token accuracy, held-out pairs", f"{token:g}", accuracy.token, token),
            at_least("both digits right, held-out pairs", f"{both:g}" if both else "–", accuracy.sequence, both),
            Finding("token accuracy with average attention", averaged, f"{average.averaged:.4f}"),
            Finding("attention leaked to the digits", "none", f"{leaked:g}", leaked == 0),
            Finding("critical edges at 0.01, of those with attention", "–",
                    f"{n_critical} of {len(critical.table)}"),
            Finding("token accuracy on the critical edges alone", "–", f"{critical.without_others:.4f}"),
            Finding("logits rebuilt from their terms, mean L2 difference", "≈ 0", f"{difference:.1e}",
                    difference < 1e-2),
            Finding("area under the ROC curve, o1 against o2, last layer", "–", f"{separable:.3f}"),
        ]  # fmt: skip

    return findings


def _flow(task: Task, model: Transformer) -> Mapping[str, go.Figure]:
    studied = on_held_out(task, model)
    effects = critical_edges(studied).table
    return {"flow": flow_figure(studied, 0, effects)}


TWO_LAYERS = Reproduction(
    name="compression",
    source=FARRELL,
    model="2 layers, 1 head, d=64, W_V = W_O = I, frozen",
    task="compression",
    recipe="fast",
    seed=0,
    findings=_compression_findings(0.9145, 0.831, "–"),
    figures=_flow,
)
"""The model of the article."""

THREE_LAYERS = replace(
    TWO_LAYERS,
    name="compression_three_layers",
    model="3 layers, 1 head, d=64, W_V = W_O = I, frozen",
    recipe="three_layers",
    findings=_compression_findings(1.0, 1.0, "–"),
)
"""The model of the article with another layer."""

NARROW = replace(
    TWO_LAYERS,
    name="compression_narrow",
    source=f"{FARRELL}, training notebook",
    model="3 layers, 1 head, d=8, W_V = W_O = I, frozen; earlier layout",
    task="compression_notebook",
    seed=1,
    findings=_compression_findings(0.99, 0.0, "0.9915"),
)
"""The model of the training notebook."""
