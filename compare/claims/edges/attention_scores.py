"""A model's attention scores as queries times keys over a scale, at the hook points where edges are patched."""

import math
from typing import Any, Final
from weakref import WeakKeyDictionary

import array_api_compat.torch as xp
import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.errors import RaspLensError
from rasplens.model.hook_points import act_name
from rasplens.model.interventions import of_each_head

SCALED_SCORES: Final = 1e-3
"""How far attention scores may be from query times key over the scale, relative to the largest."""

ROUNDING: Final = 1e-5
"""Scores that differ by less are the same."""

HIDDEN: Final = -1e4
"""Attention scores below this are those of positions that are not seen."""

Activations = dict[str, torch.Tensor]

_SCALES: WeakKeyDictionary[Any, dict[int, float]] = WeakKeyDictionary()


def why_not_patchable(studied: StudiedModel) -> str:
    """Why a model's edges cannot be patched; empty if they can.

    Its attention scores have to be queries times keys over one scale, all at hook points.
    """
    few = studied.first(2)
    scores = [act_name("attn_scores", layer) for layer in range(few.n_layers)]
    points = [*scores, *(point for layer in range(few.n_layers) for point in projections(few, layer))]
    if missing := [point for point in points if point not in few.model.hook_dict]:
        return f"the model has no hook point {missing[0]!r}"
    try:
        found = {name: torch.as_tensor(array) for name, array in few.cache(points).items()}
    except RaspLensError:  # a bridge may have hook points that its architecture does not use
        return "nothing passes a hook point of its queries, keys, values or scores"
    for layer, name in enumerate(scores):
        query, key = (found[projection(few, layer, letter)] for letter in "qk")
        seen = found[name] > HIDDEN
        error = (_products(query, key) * scale_of_scores(few, layer) - found[name])[seen]
        if error.numel() and error.abs().max() > SCALED_SCORES * found[name][seen].abs().max() + ROUNDING:
            turned = ", which rotary positions turn behind their hook points" if _is_rotary(few) else ""
            return f"its attention scores are not queries times keys over a scale{turned}"
        if not _scores_decide(few, layer):
            return "what is changed of its attention scores does not change its attention"
    return ""


def _is_rotary(studied: StudiedModel) -> bool:
    return getattr(studied.model.cfg, "positional_embedding_type", "") == "rotary"


def _scores_decide(studied: StudiedModel, layer: int) -> bool:
    """Whether each position attends to one other alone, that which it sees least of, when the rest is taken away.

    Not to itself: a mask may hide a position from itself.
    """
    kept: Activations = {}

    def only_the_least(scores: torch.Tensor, hook: object) -> torch.Tensor:
        kept["seen"] = seen = scores > HIDDEN
        least = scores.masked_fill(~seen, torch.inf).argmin(dim=-1, keepdim=True)
        kept["only"] = only = torch.zeros_like(seen).scatter(-1, least, True)
        return scores.masked_fill(~only, -torch.inf)

    studied.logits(
        [(act_name("attn_scores", layer), only_the_least), (name := act_name("pattern", layer), keep(kept, name))]
    )
    error = (kept[name] - kept["only"].to(kept[name].dtype))[kept["seen"].any(dim=-1)]
    return bool(error.abs().max() < SCALED_SCORES)


def scale_of_scores(studied: StudiedModel, layer: int) -> float:
    """Return the factor from queries times keys to a layer's attention scores.

    It is measured, for configs differ in what they say of it.
    """
    if (known := _SCALES.setdefault(studied.model, {}).get(layer)) is not None:
        return known
    points = [act_name("attn_scores", layer), *(projection(studied, layer, letter) for letter in "qk")]
    scores, query, key = (torch.as_tensor(array).double() for array in studied.first(2).cache(points).values())
    products, seen = _products(query, key), scores > HIDDEN
    total = float((products[seen] ** 2).sum())
    found = float((products[seen] * scores[seen]).sum()) / total if total else 0.0
    said = 1 / getattr(studied.model.cfg, "attn_scale", math.inf)
    found = said if math.isclose(found, said, rel_tol=SCALED_SCORES) or not total else found
    _SCALES[studied.model][layer] = found
    return found


def projections(studied: StudiedModel, layer: int) -> list[str]:
    """Return the hook points of a layer's queries, keys and values, as `projection` does."""
    return [projection(studied, layer, letter) for letter in "qkv"]


def projection(studied: StudiedModel, layer: int, letter: str) -> str:
    """Where values are, or queries and keys as they meet: those that rotary positions have turned."""
    turned = act_name(f"rot_{letter}", layer)
    return turned if turned in studied.model.hook_dict else act_name(letter, layer)


def of_heads(studied: StudiedModel, layer: int, letter: str) -> Float[np.ndarray, "input ctx head d_head"]:
    """Each head's queries, keys or values as `projection` has them; shared ones once for each."""
    return of_each_head(studied.whole(projection(studied, layer, letter)), studied.model.cfg.n_heads, np)


def keep(kept: Activations, name: str) -> Any:
    """Return the hook function that keeps an activation under a name."""

    def keep(activation: torch.Tensor, hook: object) -> torch.Tensor:
        kept[name] = activation
        return activation

    return keep


def _products(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    key = of_each_head(key, query.shape[2], xp)
    return torch.einsum("bqhd,bkhd->bhqk", query, key)
