"""Which attention edges a model needs: found one by one, then tested together."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from rasplens.compare.evidence.ablation.edges import Edge
from rasplens.compare.evidence.ablation.effects import edge_effects
from rasplens.compare.models.studied_model import FwdHook, Subject, pattern_point

TOLERANCE = 0.01
"""The token accuracy that losing an edge costs at least, for the edge to be critical."""


@dataclass(frozen=True, eq=False)
class CriticalEdges:
    """The edges that a model needs, and whether they are enough.

    Attributes:
        table: Every edge with attention: columns layer, query, key, attention, zero (token accuracy lost without
            it), mean, critical.
        clean: Token accuracy as it is.
        without_others: Token accuracy with all edges but the critical ones ablated at the same time. Far below
            `clean`, it shows that edges which are dispensable one by one stand in for each other.
    """

    table: pd.DataFrame
    clean: float
    without_others: float


def critical_edges(subject: Subject, tolerance: float = TOLERANCE) -> CriticalEdges:
    """The edges whose loss alone costs more than the tolerance, and the accuracy on those edges alone.

    An ablated edge's attention is shared out among the rest of its row (Farrell et al. 2025).

    Args:
        subject: The model.
        tolerance: Token accuracy, in [0, 1].

    Raises:
        ValueError: If the tolerance lies outside [0, 1].
    """
    if not 0 <= tolerance <= 1:
        raise ValueError(f"The tolerance is a difference of accuracies, in [0, 1]; got {tolerance}.")
    table = edge_effects(subject, most_answers=subject.targets.size).table
    table["critical"] = table["zero"] > tolerance
    others = [Edge(row.layer, row.query, row.key) for row in table[~table["critical"]].itertuples()]
    return CriticalEdges(table, float(subject.right().mean()), accuracy_without(subject, others))


def accuracy_without(subject: Subject, edges: Sequence[Edge]) -> float:
    """Token accuracy with several edges ablated at the same time; a row that loses all of them stays silent."""
    hooks: list[FwdHook] = []
    for layer in range(subject.n_layers):
        gone = [edge for edge in edges if edge.layer == layer]
        if gone:
            hooks.append((pattern_point(layer), lambda pattern, hook, gone=gone: _without(subject, pattern, gone)))
    return float((subject.edited_answers(hooks) == subject.targets).mean())


def _without(subject: Subject, pattern: torch.Tensor, edges: Sequence[Edge]) -> torch.Tensor:
    for edge in edges:
        pattern[:, :, subject.at(edge.query), subject.at(edge.key)] = 0
    for query in {subject.at(edge.query) for edge in edges}:
        total = pattern[:, :, query].sum(dim=-1, keepdim=True)
        pattern[:, :, query] /= torch.where(total > 0, total, 1)
    return pattern
