"""The heads of a model that together carry what a program gathers, found by their effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from rasplens.compare.claims.edges.edge_patching import EdgePatch
from rasplens.compare.claims.effects.effect import LogitDifferences, turned
from rasplens.compare.claims.effects.passes import attributed, with_edges
from rasplens.compare.subject.studied_model import Head, StudiedModel

ENOUGH: Final = 0.8
"""Heads are added to a group until it has this share of the effect of all heads."""

MOST: Final = 16
"""Of larger models so many heads are tried, and a group has no more."""

SIZES: Final = (1, 2, 3, 4, 6, 8, 11, MOST)
"""The sizes of groups that are tried."""

NONE_BELOW: Final = 0.1
"""If values along a selector's edges have a smaller effect in all heads, no heads are looked for."""


@dataclass(frozen=True, eq=False)
class Group:
    """Heads that together carry what some aggregates gather.

    Attributes:
        heads: These, the one with the largest effect first.
        alone: The effect of each alone.
        attention: How much of the attention of each is on the selector's edges, where it selects.
        uniform: How much uniform attention would have there.
    """

    heads: tuple[Head, ...]
    alone: tuple[float, ...]
    attention: tuple[float, ...]
    uniform: float


def group_of(studied: StudiedModel, patch: EdgePatch, asked: LogitDifferences) -> Group | None:
    """The smallest group of heads, of those that are tried, which has most of the effect of all heads.

    Of a large model, half of the heads that are tried have the largest effect to first order, which fails where
    attention is saturated. The others have the most attention on the edges. Each is patched alone, and then groups
    of those with the largest effects.

    Args:
        studied: The model.
        patch: Pairs of inputs with the edges of a selector, of which values are patched.
        asked: The trials.

    Returns:
        None where values along these edges have hardly any effect.
    """
    if not len(asked):
        return None
    before = asked.of(studied.clean_logits[patch.base])

    def effect(heads: Sequence[Head] | None) -> float:
        return turned(before, asked.of(with_edges(studied, patch, heads))).share

    if not (of_all := effect(None)) > NONE_BELOW:
        return None
    attention, tried = _on_edges(studied, patch), list(studied.heads)
    if len(tried) > MOST:
        tried = _first(attributed(studied, patch, lambda logits, rows: -asked.within(rows).of(logits).sum()))
        tried += [head for head in _first(attention) if head not in tried]
    alone = {head: effect([head]) for head in tried}
    ranked = sorted(tried, key=lambda head: -alone[head])
    size = 0
    for size in sorted({min(size, len(ranked)) for size in SIZES}):
        if effect(ranked[:size]) >= ENOUGH * of_all:
            break
    heads = tuple(ranked[:size])
    visible = studied.task.visible.sum(axis=1)[:, None]
    uniform = float((patch.edges / visible).sum(axis=2)[patch.edges.any(axis=2)].mean())
    return Group(heads, tuple(alone[one] for one in heads), tuple(float(attention[one]) for one in heads), uniform)


def _first(scores: Float[np.ndarray, "layer head"]) -> list[Head]:
    """The heads with the largest scores, half as many as are tried."""
    order = np.argsort(-scores, axis=None, kind="stable")[: MOST // 2]
    layers, heads = np.unravel_index(order, scores.shape)
    return list(zip(layers.tolist(), heads.tolist(), strict=True))


def _on_edges(studied: StudiedModel, patch: EdgePatch) -> Float[np.ndarray, "layer head"]:
    """How much of each head's attention is on edges, where a row has any."""
    few, rows = studied.on(studied.ids[patch.base]), patch.edges.any(axis=2)
    found = np.zeros((studied.n_layers, studied.model.cfg.n_heads))
    for layer in studied.attending_layers:
        on_edges = (few.pattern(layer) * patch.edges[:, None]).sum(axis=3)
        found[layer] = np.moveaxis(on_edges, 1, 2)[rows].mean(axis=0)
    return found
