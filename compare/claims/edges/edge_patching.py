"""Patching attention edges: a part of an edge as it is on another input, in every layer and head.

Along an edge, a query meets a key, and a value is gathered. Each of the three can be taken from another input
for some edges and left as it is for the others; the rest of the model runs on. Doing so in all layers and heads
at once needs no matching of heads between two models, and is the same in whatever basis weights are written. Edges
can also be removed, in all heads or in some.

Queries are taken for whole rows, own edges and a BOS included: scores of one query only say something beside one
another, and those of two queries have no common zero.

Source: path patching (Wang et al. 2022, "Interpretability in the Wild", section 3.1), with all heads together.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.claims.edges.attention_scores import keep, projection, scale_of_scores
from rasplens.compare.subject.studied_model import FwdHook, Head, StudiedModel
from rasplens.model.hook_points import act_name, layer_of
from rasplens.model.interventions import LETTERS, EdgePart, Edges, torch_hooks

Activations = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class EdgePatch:
    """A part of some attention edges, taken from other inputs; or the edges, removed.

    Attributes:
        base: The inputs, by their place among the model's.
        source: Where the part comes from, one for each; unused where edges are removed.
        edges: Between positions of the task; for queries, any edge of a row stands for the whole row.
        part: What is patched.
    """

    base: Int[np.ndarray, " pair"]
    source: Int[np.ndarray, " pair"]
    edges: Bool[np.ndarray, "pair query key"]
    part: EdgePart

    def __len__(self) -> int:
        return len(self.base)

    def of(self, rows: slice | np.ndarray) -> "EdgePatch":
        """The patch on some of the inputs."""
        return EdgePatch(self.base[rows], self.source[rows], self.edges[rows], self.part)


def patched(
    studied: StudiedModel,
    patch: EdgePatch,
    watching: Sequence[FwdHook] = (),
    heads: Collection[Head] | None = None,
) -> tuple[Int[np.ndarray, "pair answer"], dict[int, np.ndarray]]:
    """A model's answers on inputs with a part of some edges as it is on others.

    Args:
        studied: The model.
        patch: The inputs, and what is patched.
        watching: More hooks, run in batches, behind those that patch.
        heads: Those in which it is patched; by default all.

    Returns:
        The answers as the task's codes, and by layer the attention scores then, `[pair, head, ctx, ctx]`.
    """
    answers, scores = [], []
    for start in range(0, len(patch), studied.batch):
        found, of_batch = _patched(studied, patch.of(slice(start, start + studied.batch)), watching, heads)
        answers.append(found)
        scores.append(of_batch)
    layers = studied.attending_layers
    return np.concatenate(answers), {layer: np.concatenate([one[layer] for one in scores]) for layer in layers}


def patched_logits(studied: StudiedModel, patch: EdgePatch) -> Float[np.ndarray, "pair answer logit"]:
    """A model's logits on inputs with a part of some edges as it is on others, in every layer and head."""
    starts = range(0, len(patch), studied.batch)
    batches = [patch.of(slice(start, start + studied.batch)) for start in starts]
    found = []
    for one in batches:
        where = where_patched(studied, one)
        along = [_edges(studied, layer, one, where) for layer in studied.attending_layers]
        found.append(studied.logits(torch_hooks(along), one.base))
    return np.concatenate(found)


def _patched(
    studied: StudiedModel, patch: EdgePatch, watching: Sequence[FwdHook], heads: Collection[Head] | None
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    where = where_patched(studied, patch)
    layers = studied.attending_layers
    scores: Activations = {}
    along = [_edges(studied, layer, patch, where & in_heads(studied, layer, heads)) for layer in layers]
    kept = [(name, keep(scores, name)) for name in (act_name("attn_scores", layer) for layer in layers)]
    logits = studied.logits([*torch_hooks(along), *kept, *watching], patch.base)
    return studied.codes(logits, patch.base), {layer_of(name): own.numpy() for name, own in scores.items()}


def where_patched(studied: StudiedModel, patch: EdgePatch) -> torch.Tensor:
    """The patched edges, or whole rows, between the model's positions: `[pair, 1, query, key]`."""
    where = _on_the_models_positions(studied, patch.edges, studied.tokens.shape[1])[:, None]
    return where.any(dim=-1, keepdim=True).expand_as(where) if patch.part == "queries" else where


def _edges(studied: StudiedModel, layer: int, patch: EdgePatch, where: torch.Tensor) -> Edges:
    """A part of a layer's edges as it is on other inputs."""
    edges = edges_of(studied, layer, patch.part, where)
    if patch.part == "attention":
        return edges
    return replace(edges, value=studied.whole(edges.point(LETTERS[patch.part]))[patch.source])


def edges_of(studied: StudiedModel, layer: int, part: EdgePart, where: torch.Tensor) -> Edges:
    """Edges of a layer of which a part is to come from elsewhere."""
    read_at = {letter: projection(studied, layer, letter) for letter in "qkv"}
    scale = 1.0 if part == "values" else scale_of_scores(studied, layer)
    return Edges(layer, part, None, where, scale, read_at=read_at)


def in_heads(studied: StudiedModel, layer: int, heads: Collection[Head] | None) -> torch.Tensor:
    """Which heads of a layer are patched, as an axis of edges."""
    if heads is None:
        return torch.ones(1, 1, 1, dtype=torch.bool)
    return torch.tensor([(layer, head) in heads for head in range(studied.model.cfg.n_heads)])[:, None, None]


def _on_the_models_positions(studied: StudiedModel, edges: np.ndarray, n_ctx: int) -> torch.Tensor:
    places = list(studied.vocabulary.positions)
    whole = np.zeros((len(edges), n_ctx, n_ctx), dtype=bool)
    whole[np.ix_(range(len(edges)), places, places)] = edges
    return torch.as_tensor(whole)
