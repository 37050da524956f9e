"""Patching attention edges: in every layer and head, a part of an edge as it is on another input.

Along an edge, a query meets a key, and a value is gathered. Each of the three can be taken from another input
for some edges and left as it is for the others; the rest of the model runs on. Doing so in all layers and heads
at once needs no matching of heads between two models, and is the same in whatever basis weights are written.

Queries are taken for whole rows, own edges and a BOS included: scores of one query only say something beside one
another, and those of two queries have no common zero.

Source: path patching (Wang et al. 2022, "Interpretability in the Wild", section 3.1), with all heads together.
"""

import math
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Int

from rasplens.compare.subject.studied_model import BATCH, FwdHook, StudiedModel
from rasplens.model import HookedModel
from rasplens.model.hook_points import act_name, layer_of
from rasplens.model.interventions import LETTERS, EdgePart, Edges, torch_hooks

SCALED_SCORES: Final = 1e-3
"""How far attention scores may be from query times key over the scale, relative to the largest."""

ROUNDING: Final = 1e-5
"""Scores that differ by less are the same."""

HIDDEN: Final = -1e4
"""Attention scores below this are those of positions that are not seen."""

Activations = dict[str, torch.Tensor]

_SCALES: WeakKeyDictionary[Any, dict[int, float]] = WeakKeyDictionary()


def patched(
    studied: StudiedModel,
    base: Int[np.ndarray, " pair"],
    source: Int[np.ndarray, " pair"],
    edges: Bool[np.ndarray, "pair query key"],
    part: EdgePart,
    watching: Sequence[FwdHook] = (),
) -> tuple[Int[np.ndarray, "pair answer"], dict[int, np.ndarray]]:
    """A model's answers on inputs with a part of some edges as it is on others.

    Args:
        studied: The model.
        base: The inputs, by their place among the model's.
        source: Where the part comes from, one for each.
        edges: Between positions of the task; for queries, any edge of a row stands for the whole row.
        part: What is patched.
        watching: More hooks, run in batches, behind those that patch.

    Returns:
        The answers as the task's codes, and by layer the attention scores then, `[pair, head, ctx, ctx]`.
    """
    answers, scores = [], []
    for start in range(0, len(base), BATCH):
        batch = slice(start, start + BATCH)
        found, of_batch = _patched(studied, base[batch], source[batch], edges[batch], part, watching)
        answers.append(found)
        scores.append(of_batch)
    layers = studied.attending_layers
    return np.concatenate(answers), {layer: np.concatenate([one[layer] for one in scores]) for layer in layers}


def _patched(
    studied: StudiedModel,
    base: np.ndarray,
    source: np.ndarray,
    edges: np.ndarray,
    part: EdgePart,
    watching: Sequence[FwdHook],
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    where = _on_the_models_positions(studied, edges, studied.tokens.shape[1])[:, None]
    if part == "queries":
        where = where.any(dim=-1, keepdim=True).expand_as(where)
    layers = studied.attending_layers
    scores: Activations = {}
    along = [_edges(studied, layer, source, where, part) for layer in layers]
    kept = [(name, _keep(scores, name)) for name in (act_name("attn_scores", layer) for layer in layers)]
    logits = studied.logits([*torch_hooks(along), *kept, *watching], base)
    return studied.codes(logits, base), {layer_of(name): own.numpy() for name, own in scores.items()}


def _edges(studied: StudiedModel, layer: int, source: np.ndarray, where: torch.Tensor, part: EdgePart) -> Edges:
    """A part of a layer's edges as it is on other inputs."""
    read_at = {letter: _point(studied, layer, letter) for letter in "qkv"}
    value = None if part == "attention" else studied.whole(read_at[LETTERS[part]])[source]
    scale = 1.0 if part == "values" else _scale(studied, layer)
    return Edges(layer, part, value, where, scale, read_at)


def why_not_patchable(studied: StudiedModel) -> str:
    """Why a model's edges cannot be patched; empty if they can.

    Its attention scores have to be queries times keys over one scale, all at hook points.
    """
    few = studied.first(2)
    scores = [act_name("attn_scores", layer) for layer in range(few.n_layers)]
    points = [*scores, *(point for layer in range(few.n_layers) for point in _points(few, layer))]
    if missing := [point for point in points if point not in few.model.hook_dict]:
        return f"the model has no hook point {missing[0]!r}"
    found = {name: torch.as_tensor(array) for name, array in few.cache(points).items()}
    for layer, name in enumerate(scores):
        query, key = (found[_point(few, layer, letter)] for letter in "qk")
        if query.shape != key.shape:
            return "several of its heads share their keys"
        seen = found[name] > HIDDEN
        error = (_products(query, key) * _scale(few, layer) - found[name])[seen]
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
        [(act_name("attn_scores", layer), only_the_least), (name := act_name("pattern", layer), _keep(kept, name))]
    )
    error = (kept[name] - kept["only"].to(kept[name].dtype))[kept["seen"].any(dim=-1)]
    return bool(error.abs().max() < SCALED_SCORES)


def _scale(studied: StudiedModel, layer: int) -> float:
    """Return the factor from queries times keys to a layer's attention scores.

    It is measured, for configs differ in what they say of it.
    """
    if (known := _SCALES.setdefault(studied.model, {}).get(layer)) is not None:
        return known
    points = [act_name("attn_scores", layer), *(_point(studied, layer, letter) for letter in "qk")]
    scores, query, key = (torch.as_tensor(array).double() for array in studied.first(2).cache(points).values())
    products, seen = _products(query, key), scores > HIDDEN
    total = float((products[seen] ** 2).sum())
    found = float((products[seen] * scores[seen]).sum()) / total if total else 0.0
    said = 1 / getattr(studied.model.cfg, "attn_scale", math.inf)
    found = said if math.isclose(found, said, rel_tol=SCALED_SCORES) or not total else found
    _SCALES[studied.model][layer] = found
    return found


def _points(studied: StudiedModel, layer: int) -> list[str]:
    return [_point(studied, layer, letter) for letter in "qkv"]


def _point(studied: StudiedModel, layer: int, letter: str) -> str:
    """Where values are, or queries and keys as they meet: those that rotary positions have turned."""
    turned = act_name(f"rot_{letter}", layer)
    is_turned = isinstance(studied.model, HookedModel) and turned in studied.model.hook_dict
    return turned if is_turned else act_name(letter, layer)


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


def _products(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bqhd,bkhd->bhqk", query, key)
