"""Which attention edges a model needs: found one by one, then tested together."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.ablation.edges import Edge, edge_effects
from rasplens.compare.subject.studied_model import FwdHook, StudiedModel
from rasplens.errors import RaspLensError
from rasplens.model.hook_points import act_name

TOLERANCE = 0.01
"""An edge is critical if ablating it drops token accuracy by more than this."""


@dataclass(frozen=True, eq=False)
class CriticalEdges:
    """The edges that a model needs, and whether they are enough.

    Attributes:
        table: Every edge with attention: columns layer, query, key, attention, zero (the accuracy drop
            under zero ablation), mean, resample, critical.
        clean: Token accuracy as it is.
        without_others: Token accuracy with all edges but the critical ones ablated at the same time. Far below
            `clean`, it shows that edges which are dispensable one by one stand in for each other.
    """

    table: pd.DataFrame
    clean: float
    without_others: float


def critical_edges(studied: StudiedModel, tolerance: float = TOLERANCE) -> CriticalEdges:
    """The edges whose ablation drops accuracy by more than the tolerance, and the accuracy on those edges alone.

    An ablated edge's attention is shared out among the rest of its row (Farrell et al. 2025).

    Args:
        studied: The model.
        tolerance: Token accuracy, in [0, 1].

    Raises:
        RaspLensError: If the tolerance lies outside [0, 1].
    """
    if not 0 <= tolerance <= 1:
        raise RaspLensError(f"tolerance is an accuracy drop and must lie in [0, 1]; got {tolerance}.")
    table = edge_effects(studied, CompareConfig(edge_answers=studied.targets.size)).table
    table["critical"] = table["zero"] > tolerance
    others = [Edge(row.layer, row.query, row.key) for row in table[~table["critical"]].itertuples()]
    return CriticalEdges(table, float(studied.right().mean()), accuracy_without(studied, others))


def accuracy_without(studied: StudiedModel, edges: Sequence[Edge]) -> float:
    """Token accuracy with several edges ablated at the same time; a row that loses all its edges is masked."""
    hooks: list[FwdHook] = []
    for layer in range(studied.n_layers):
        gone = [edge for edge in edges if edge.layer == layer]
        if gone:
            point = act_name("pattern", layer)
            hooks.append((point, lambda pattern, hook, gone=gone: _without(studied, pattern, gone)))
    return studied.edited_accuracy(hooks)


def _without(studied: StudiedModel, pattern: torch.Tensor, edges: Sequence[Edge]) -> torch.Tensor:
    for edge in edges:
        pattern[:, :, studied.at(edge.query), studied.at(edge.key)] = 0
    for query in {studied.at(edge.query) for edge in edges}:
        total = pattern[:, :, query].sum(dim=-1, keepdim=True)
        pattern[:, :, query] /= torch.where(total > 0, total, 1)
    return pattern
