"""Patching attention edges: in every layer and head, a part of an edge as it is on another input.

Along an edge, a query meets a key, and a value is gathered. Each of the three can be taken from another input
for some edges and left as it is for the others; the rest of the model runs on. Doing so in all layers and heads
at once needs no matching of heads between two models, and is the same in whatever basis weights are written.

Queries are taken for whole rows, own edges and a BOS included: scores of one query only say something beside one
another, and those of two queries have no common zero.

Source: path patching (Wang et al. 2022, "Interpretability in the Wild", section 3.1), with all heads together.
"""

from typing import Any, Final, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int

from rasplens.compare.models.studied_model import (
    BATCH,
    StudiedModel,
    pattern_point,
    projection_point,
    scores_point,
    z_point,
)

Part = Literal["values", "keys", "queries", "attention"]
"""What of an edge is patched; "attention" takes the edge away, and the rest of its row keeps its proportions."""

LETTERS: Final = {"values": "v", "keys": "k", "queries": "q"}
"""Whose hook points a part of an edge is read at."""

SCALED_SCORES: Final = 1e-3
"""How far attention scores may be from query times key over the scale, relative to the largest."""

Activations = dict[str, torch.Tensor]


def patched(
    studied: StudiedModel,
    base: Int[np.ndarray, " pair"],
    source: Int[np.ndarray, " pair"],
    edges: Bool[np.ndarray, "pair query key"],
    part: Part,
) -> tuple[Int[np.ndarray, "pair answer"], dict[int, np.ndarray]]:
    """A model's answers on inputs with a part of some edges as it is on others.

    Args:
        studied: The model.
        base: The inputs, by their place among the model's.
        source: Where the part comes from, one for each.
        edges: Between positions of the task; for queries, any edge of a row stands for the whole row.
        part: What is patched.

    Returns:
        The answers as the task's codes, and by layer the attention scores then, `[pair, head, ctx, ctx]`.
    """
    answers, scores = [], []
    for start in range(0, len(base), BATCH):
        batch = slice(start, start + BATCH)
        found, of_batch = _patched(studied, base[batch], source[batch], edges[batch], part)
        answers.append(found)
        scores.append(of_batch)
    layers = studied.attending_layers
    return np.concatenate(answers), {layer: np.concatenate([one[layer] for one in scores]) for layer in layers}


def _patched(
    studied: StudiedModel, base: np.ndarray, source: np.ndarray, edges: np.ndarray, part: Part
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    where = _on_the_models_positions(studied, edges, studied.tokens.shape[1])[:, None]
    if part == "queries":
        where = where.any(dim=-1, keepdim=True).expand_as(where)
    theirs = {} if part == "attention" else _theirs(studied, source, part)
    own: Activations = {}
    hooks = [(name, _keep(own, name)) for layer in studied.attending_layers for name in _points(layer)]
    for layer in studied.attending_layers:
        if part == "values":
            hooks.append((z_point(layer), _take_values(layer, own, theirs, where)))
        else:
            hooks.append((scores_point(layer), _take_scores(layer, own, theirs, where, studied)))
        hooks += [(name, _keep(own, name)) for name in (scores_point(layer), pattern_point(layer))]
    answers = studied.codes(studied.logits(hooks, base), base)
    return answers, {layer: own[scores_point(layer)].numpy() for layer in studied.attending_layers}


def why_not_patchable(studied: StudiedModel) -> str:
    """Why a model's edges cannot be patched; empty if they can.

    Its attention scores have to be queries times keys over one scale, all at hook points.
    """
    few = studied.first(2)
    scores = [scores_point(layer) for layer in range(few.n_layers)]
    points = [*scores, *(point for layer in range(few.n_layers) for point in _points(layer))]
    if missing := [point for point in points if point not in few.model.hook_dict]:
        return f"the model has no hook point {missing[0]!r}"
    found = {name: torch.as_tensor(array) for name, array in few.cache(points).items()}
    for layer, name in enumerate(scores):
        product = _scores(found[projection_point(layer, "q")], found[projection_point(layer, "k")], few)
        seen = torch.isfinite(found[name]) & (found[name] > torch.finfo(found[name].dtype).min / 2)
        if product.shape != found[name].shape:
            return "several of its heads share their keys"
        error = (product - found[name])[seen & (found[name] > -1e4)]
        if error.numel() and error.abs().max() > SCALED_SCORES * (1 + found[name][seen].abs().max()):
            return "its attention scores are not queries times keys over a scale"
    return ""


def _points(layer: int) -> list[str]:
    return [projection_point(layer, letter) for letter in "qkv"]


def _keep(kept: Activations, name: str) -> Any:
    def keep(activation: torch.Tensor, hook: object) -> torch.Tensor:
        kept[name] = activation
        return activation

    return keep


def _on_the_models_positions(studied: StudiedModel, edges: np.ndarray, n_ctx: int) -> torch.Tensor:
    places = list(studied.vocabulary.positions)
    whole = np.zeros((len(edges), n_ctx, n_ctx), dtype=bool)
    whole[np.ix_(range(len(edges)), places, places)] = edges
    return torch.as_tensor(whole)


def _theirs(studied: StudiedModel, source: np.ndarray, part: Part) -> Activations:
    points = [projection_point(layer, LETTERS[part]) for layer in studied.attending_layers]
    return {point: torch.as_tensor(studied.whole(point)[source]) for point in points}


def _scores(query: torch.Tensor, key: torch.Tensor, studied: StudiedModel) -> torch.Tensor:
    return torch.einsum("bqhd,bkhd->bhqk", query, key) / studied.model.cfg.attn_scale


def _take_scores(
    layer: int, own: Activations, theirs: Activations, where: torch.Tensor, studied: StudiedModel
) -> Any:
    """Scores along the edges from another input's queries or keys; none at all where there is no other input."""

    def take(scores: torch.Tensor, hook: object) -> torch.Tensor:
        if not theirs:
            return scores.masked_fill(where, -torch.inf)
        q, k = (projection_point(layer, letter) for letter in "qk")
        changed = _scores(theirs.get(q, own[q]), theirs.get(k, own[k]), studied)
        # What a position does not see stays unseen: a finite change of minus infinity is none.
        change = changed - _scores(own[q], own[k], studied)
        return scores + torch.where(where, change, 0)

    return take


def _take_values(layer: int, own: Activations, theirs: Activations, where: torch.Tensor) -> Any:
    point = projection_point(layer, "v")

    def take(gathered: torch.Tensor, hook: object) -> torch.Tensor:
        change = theirs[point] - own[point]
        along = own[pattern_point(layer)] * where
        return gathered + torch.einsum("bhqk,bkhd->bqhd", along, change)

    return take
