"""Third axis: what each head and each attention edge is worth, by taking it away.

Two ways: *zero* takes a head's output, or an edge's attention, away (the rest of the row is renormalised,
as in Farrell et al. 2025); *mean* replaces it by its mean over inputs. An ablation is a lower bound on
importance where other parts repair the damage, and what it says depends on the way: both are reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from rasplens.compare.live import live_rows
from rasplens.compare.subject import Head, Subject, pattern_point

WAYS = ("zero", "mean")

EDGE_ANSWERS = 400
"""Edges are ablated on as many inputs as have this many answers together, unless told otherwise."""

ATTENDED = 1e-3
"""The least attention on some input that makes an edge worth trying."""

_BATCH = 2_048


@dataclass(frozen=True)
class Edge:
    """An attention edge, all heads of the layer together, between positions of the task."""

    layer: int
    query: int
    key: int


def head_effects(subject: Subject) -> pd.DataFrame:
    """Token accuracy lost by ablating each head: columns layer, head, zero, mean."""
    clean = float(subject.right().mean())
    rows = []
    for layer, head in subject.heads:
        lost = {way: clean - _accuracy_without_head(subject, (layer, head), way) for way in WAYS}
        rows.append({"layer": layer, "head": head, **lost})
    return pd.DataFrame(rows, columns=["layer", "head", *WAYS])


def edge_effects(subject: Subject, most_answers: int = EDGE_ANSWERS) -> pd.DataFrame:
    """Token accuracy lost by ablating each attention edge: columns layer, query, key, attention, zero, mean.

    `attention` is the mean over inputs and heads. Edges that cannot matter are left out: those without
    attention on any input, and those of rows where no head writes anything that reaches an answer.
    """
    subject = subject.first(max(1, most_answers // subject.targets.shape[1]))
    clean = float(subject.right().mean())
    edges = attended_edges(subject)
    frame = pd.DataFrame([(edge.layer, edge.query, edge.key) for edge in edges], columns=["layer", "query", "key"])
    frame["attention"] = [_mean_attention(subject, edge) for edge in edges]
    for way in WAYS:
        frame[way] = [clean - accuracy for accuracy in _accuracies_without(subject, edges, way)]
    return frame


def attended_edges(subject: Subject) -> list[Edge]:
    """The edges that get attention on some input, from a head whose row is live there."""
    live = live_rows(subject)
    edges = []
    for layer in range(subject.n_layers):
        attended = np.zeros((subject.n_pos, subject.n_pos), dtype=bool)
        for head in subject.heads_of(layer):
            rows = live[layer, head]
            attended[rows] |= subject.pattern(layer)[:, head].max(axis=0)[rows] > ATTENDED
        edges += [Edge(layer, int(query), int(key)) for query, key in np.argwhere(attended)]
    return edges


def _accuracy_without_head(subject: Subject, head: Head, way: str) -> float:
    layer, index = head

    def ablate(result: torch.Tensor, hook: object) -> torch.Tensor:
        output = result[:, :, index]
        result[:, :, index] = 0 if way == "zero" else output.mean(dim=0)
        return result

    logits = subject.logits(subject.tokens, [(f"blocks.{layer}.attn.hook_result", ablate)])
    return float((subject.read_answers(logits) == subject.targets).mean())


def _accuracies_without(subject: Subject, edges: Sequence[Edge], way: str) -> list[float]:
    """The accuracy without each edge; several edges share a batch, each on its own copy of the inputs."""
    accuracies: list[float] = []
    together = max(1, _BATCH // subject.n_inputs)
    for layer in range(subject.n_layers):
        of_layer = [edge for edge in edges if edge.layer == layer]
        for start in range(0, len(of_layer), together):
            accuracies += _accuracies_in_batch(subject, of_layer[start : start + together], way)
    return accuracies


def _accuracies_in_batch(subject: Subject, edges: Sequence[Edge], way: str) -> list[float]:
    layer, n = edges[0].layer, subject.n_inputs
    means = subject.pattern(layer).mean(axis=0)

    def ablate(pattern: torch.Tensor, hook: object) -> torch.Tensor:
        for i, edge in enumerate(edges):
            row = pattern[i * n : (i + 1) * n, :, subject.offset + edge.query]
            key = subject.offset + edge.key
            if way == "zero":
                row[..., key] = 0
                total = row.sum(dim=-1, keepdim=True)
                row /= torch.where(total > 0, total, 1)
            else:
                row[..., key] = torch.as_tensor(means[:, edge.query, edge.key])
        return pattern

    logits = subject.logits(subject.tokens.repeat(len(edges), 1), [(pattern_point(layer), ablate)])
    answers = subject.read_answers(logits).reshape(len(edges), *subject.targets.shape)
    return [float(accuracy) for accuracy in (answers == subject.targets).mean(axis=(1, 2))]


def _mean_attention(subject: Subject, edge: Edge) -> float:
    heads = subject.heads_of(edge.layer)
    return float(subject.pattern(edge.layer)[:, heads, edge.query, edge.key].mean())
