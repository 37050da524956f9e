"""Attention edges: which a model has, and its answers without each of them.

Every edge needs a forward pass of its own. Of a `HookedModel` only what the edge changes is computed: the row of
attention at its query, and what follows. Any other model is edited through its hook points, to the same effect.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.ablation.measurement import (
    STANDARD,
    Edited,
    Effects,
    Method,
    ablated_heads,
    measured_effects,
    replacement,
)
from rasplens.compare.pairing.relevance import relevant_rows
from rasplens.compare.subject.studied_model import BATCH, StudiedModel
from rasplens.model import HookedModel
from rasplens.model.hook_points import act_name

ATTENDED = 1e-3
"""An edge is ablated if its attention reaches this on some input."""

ROUNDING = 1e-6
"""Attention below this is a rounding error."""

Attention = Float[np.ndarray, "input head query key"]


@dataclass(frozen=True)
class Edge:
    """An attention edge, all heads of the layer together, between positions of the task."""

    layer: int
    query: int
    key: int


def edge_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each attention edge: rows layer, query, key, and attention (its mean)."""
    studied = studied.with_answers(config.edge_answers)
    edges = attended_edges(studied, config.relevance_inputs) if ablated_heads(studied.heads, config) else []
    keys = [{**vars(edge), "attention": mean_attention(studied, edge)} for edge in edges]

    def without(method: Method) -> Iterable[Edited]:
        layers = range(studied.n_layers)
        return without_edges(
            studied, edges, {layer: replacement(studied.pattern(layer), method, seed) for layer in layers}
        )

    return measured_effects(studied, keys, without, ["layer", "query", "key", "attention"])


def attended_edges(studied: StudiedModel, relevance_inputs: int = CompareConfig.relevance_inputs) -> list[Edge]:
    """The edges that get attention on some input, from a head whose row reaches an answer.

    Returns:
        In the order of layer, query and key.
    """
    relevant = relevant_rows(studied, relevance_inputs)
    edges = []
    for layer in range(studied.n_layers):
        attended = np.zeros((studied.n_pos, studied.n_pos), dtype=bool)
        for head in studied.heads_of(layer):
            rows = relevant[layer, head]
            attended[rows] |= studied.pattern(layer)[:, head].max(axis=0)[rows] > ATTENDED
        edges += [Edge(layer, int(query), int(key)) for query, key in np.argwhere(attended)]
    return edges


def mean_attention(studied: StudiedModel, edge: Edge) -> float:
    """The attention of the heads of the layer to an edge, averaged over heads and inputs."""
    heads = studied.heads_of(edge.layer)
    return float(studied.pattern(edge.layer)[:, heads, edge.query, edge.key].mean())


def without_edges(
    studied: StudiedModel, edges: Sequence[Edge], others: Mapping[int, Attention]
) -> Iterator[Edited]:
    """A model's answers after each edge alone got another attention, in the order of the edges.

    Args:
        studied: The model.
        edges: Those of a layer and a query stand together, as `attended_edges` gives them.
        others: By layer, the attention that an edge gets instead; the rest of its row shares what is left.
    """
    for (layer, query), row in itertools.groupby(edges, key=lambda edge: (edge.layer, edge.query)):
        keys = [edge.key for edge in row]
        wanted = torch.as_tensor(np.ascontiguousarray(others[layer][:, :, query, keys]))
        last = layer == studied.n_layers - 1
        n = len(keys) if last else max(1, BATCH // studied.n_inputs)
        for start in range(0, len(keys), n):
            part = slice(start, start + n)
            with torch.no_grad():
                logits = _with_rows(studied, layer, query, keys[part], wanted[..., part])
            answers = list(range(len(studied.answer_places)))
            if last:
                # Behind the last attention nothing passes between positions.
                answers = [i for i, place in enumerate(studied.task.loss_positions) if place == query]
            yield Edited(logits.numpy(), answers)


def _with_rows(
    studied: StudiedModel,
    layer: int,
    query: int,
    keys: Sequence[int],
    wanted: Float[torch.Tensor, "input head edge"],
) -> Float[torch.Tensor, "edge input answer logit"]:
    """Logits after each of one row's edges got the wanted attention."""
    place = studied.at(query)
    row = torch.as_tensor(studied.whole_pattern(layer)[:, :, place])
    rows = replaced_attention(row, [studied.at(key) for key in keys], wanted.to(row.dtype))
    last = layer == studied.n_layers - 1
    if isinstance(studied.model, HookedModel) and not studied.model.is_hooked:
        return _computed(studied, layer, place, rows, last)
    n_edits = len(keys)

    def edit(pattern: torch.Tensor, hook: object) -> torch.Tensor:
        pattern = pattern.clone()
        pattern[:, :, place] = rows.permute(2, 0, 1, 3).flatten(0, 1).to(pattern)
        return pattern

    logits = studied.run([(act_name("pattern", layer), edit)], np.tile(np.arange(studied.n_inputs), n_edits))
    logits = logits.unflatten(0, (n_edits, -1))
    return logits[:, :, [i for i, at in enumerate(studied.answer_places) if at == place]] if last else logits


def _computed(
    studied: StudiedModel, layer: int, place: int, rows: Float[torch.Tensor, "input head edge key"], last: bool
) -> Float[torch.Tensor, "edge input answer logit"]:
    """The logits of a `HookedModel` with other rows of attention: what comes before them is known."""
    values, residual = torch.as_tensor(studied.whole_values(layer)), torch.as_tensor(studied.whole_residual(layer))
    n_edits = rows.shape[2]
    changed = (rows @ values.permute(0, 2, 1, 3)).permute(2, 0, 1, 3).flatten(0, 1)
    if last:
        residual, gathered, read = residual[:, place : place + 1], changed[:, None], [0]
    else:
        gathered = torch.as_tensor(studied.whole_gathered(layer)).repeat(n_edits, 1, 1, 1)
        gathered[:, place] = changed
        read = studied.answer_places
    logits = studied.run_behind(layer, residual.repeat(n_edits, 1, 1), gathered)
    return logits[:, read].unflatten(0, (n_edits, -1))


def replaced_attention(
    row: Float[torch.Tensor, "*batch key"], keys: Sequence[int], wanted: Float[torch.Tensor, "*batch edge"]
) -> Float[torch.Tensor, "*batch edge key"]:
    """A row for each of some keys, with another attention to it; the rest keeps its proportions, the row its sum.

    A row that attends to nothing else has nothing to share out: it loses what the key loses.
    """
    total = row.sum(dim=-1, keepdim=True)
    rest = total - row[..., keys]
    has_rest = rest > ROUNDING
    factor = torch.where(has_rest, (total - wanted) / torch.where(has_rest, rest, 1), 0)
    rows = row[..., None, :] * factor[..., None]
    rows[..., range(len(keys)), keys] = wanted
    return rows
