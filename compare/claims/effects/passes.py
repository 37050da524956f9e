"""Passes of a model on bases and sources together: what is patched comes from another row of the same batch.

So no activation of any input is kept: memory does not grow with the number of inputs, layers or questions.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import torch
from array_api_compat import device
from jaxtyping import Bool, Float

from rasplens.compare.claims.edges.edge_patching import EdgePatch, edges_of, in_heads, where_patched
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.model.forward import Array
from rasplens.model.hook_points import act_name
from rasplens.model.interventions import LETTERS, EdgePart, Edges, Intervention, torch_hooks

Logits = Float[np.ndarray, "pair answer logit"]

BASE, SOURCE, AMONG = range(3)
"""The blocks of a batch: the bases, the sources, and the bases once more with edges patched."""


@dataclass(frozen=True, eq=False)
class EdgesOfBlock:
    """A part of attention edges in one block of a batch, as it is in another block.

    Attributes:
        edges: The edges, without a value.
        n: How many rows a block has.
        to: The block that is edited.
        source: The block that the part is taken from.
        strength: How far each head's goes from its own (0) to the other (1): `[head]`; None for 1.
    """

    edges: Edges
    n: int
    to: int = BASE
    source: int = SOURCE
    strength: Array | None = None

    @property
    def points(self) -> tuple[str, ...]:
        """Those of the edges."""
        return self.edges.points

    def edit(self, point: str, own: Array, seen: Mapping[str, Array], xp: ModuleType) -> Array:
        """Return scores, or what heads gather, with the block edited; see `Intervention`."""
        if point != self.edges.edited:
            return own
        rows, part = slice(self.to * self.n, (self.to + 1) * self.n), self.edges.part
        value = None
        if part != "attention":
            source = seen[self.edges.point(LETTERS[part])]
            value = source[self.source * self.n : (self.source + 1) * self.n]
        block = {name: array[rows] for name, array in seen.items()}
        edited = replace(self.edges, value=value).edit(point, own[rows], block, xp)
        if self.strength is not None:
            edited = own[rows] + self.strength[:, None] * (edited - own[rows])
        return xp.concat([own[: rows.start], edited, own[rows.stop :]])


@dataclass(frozen=True, eq=False)
class HeadsOfBlock:
    """What some heads of a layer gather on the bases, as it is on the sources.

    Attributes:
        layer: The layer.
        heads: Which of its heads.
        n: How many bases there are.
    """

    layer: int
    heads: Bool[np.ndarray, " head"]
    n: int

    @property
    def points(self) -> tuple[str, ...]:
        """That of what heads gather."""
        return (act_name("z", self.layer),)

    def edit(self, point: str, own: Array, seen: Mapping[str, Array], xp: ModuleType) -> Array:
        """Return what heads gather; see `Intervention`."""
        n, which = self.n, xp.asarray(self.heads, device=device(own))[:, None]
        return xp.concat([xp.where(which, own[n : 2 * n], own[:n]), own[n:]])


def with_edges(studied: StudiedModel, patch: EdgePatch, heads: Collection[Head] | None = None) -> Logits:
    """The logits on bases with a part of some edges as on the sources.

    Args:
        studied: The model.
        patch: The inputs, and what is patched.
        heads: Those in which it is patched; by default all.
    """

    def edits(some: EdgePatch) -> Iterator[Intervention]:
        for layer in _layers(studied, heads):
            yield EdgesOfBlock(_edges(studied, layer, some, heads), len(some))

    return _logits(studied, patch, edits)


def with_edges_that_feed(studied: StudiedModel, patch: EdgePatch, part: EdgePart, fed: Collection[Head]) -> Logits:
    """The logits on bases with edges patched only as far as they reach the keys, queries or values of some heads.

    The bases run once more, with the edges patched in all heads. Keys (or queries, or values) of the heads that
    are fed come from that run, and all else stays.

    Args:
        studied: The model.
        patch: The inputs, and the edges that feed.
        part: What they feed.
        fed: Of these heads.

    Source: path patching (Wang et al. 2022, "Interpretability in the Wild", section 3.1).
    """
    reading = _layers(studied, fed)

    def edits(some: EdgePatch) -> Iterator[Intervention]:
        all_edges = replace(some, edges=np.ones_like(some.edges), part=part)
        for layer in studied.attending_layers:
            if layer < reading[-1]:
                yield EdgesOfBlock(_edges(studied, layer, some, None), len(some), to=AMONG)
            if layer in reading:
                yield EdgesOfBlock(_edges(studied, layer, all_edges, fed), len(some), source=AMONG)

    return _logits(studied, patch, edits, (BASE, SOURCE, BASE))


def with_other_heads(studied: StudiedModel, patch: EdgePatch, kept: Collection[Head]) -> Logits:
    """The logits on bases with all that heads gather as on the sources, but for some heads."""

    def edits(some: EdgePatch) -> Iterator[Intervention]:
        for layer in studied.attending_layers:
            others = [(layer, head) not in kept for head in range(studied.model.cfg.n_heads)]
            yield HeadsOfBlock(layer, np.array(others), len(some))

    return _logits(studied, patch, edits)


def attributed(
    studied: StudiedModel, patch: EdgePatch, measured: Callable[[torch.Tensor, slice], torch.Tensor]
) -> Float[np.ndarray, "layer head"]:
    """By how much each head alone raises a quantity if its edges are patched, to first order.

    Args:
        studied: The model.
        patch: The inputs, and the edges.
        measured: From logits of some pairs, and the place of these, the quantity, which adds up over pairs.

    Source: attribution patching (Syed et al. 2023, arXiv 2310.10348).
    """
    layers, n_heads = studied.attending_layers, studied.model.cfg.n_heads
    total = np.zeros((studied.n_layers, n_heads))
    for rows, some in _batches(studied, patch, 2):
        strengths = [torch.zeros(n_heads, device=studied.device, requires_grad=True) for _ in layers]
        along = [
            EdgesOfBlock(_edges(studied, layer, some, None), len(some), strength=strength)
            for layer, strength in zip(layers, strengths, strict=True)
        ]
        logits = studied.run(torch_hooks(along), np.concatenate([some.base, some.source]))[: len(some)]
        total[layers] += torch.stack(torch.autograd.grad(measured(logits, rows), strengths)).cpu().numpy()
    return total


def _logits(
    studied: StudiedModel,
    patch: EdgePatch,
    edits: Callable[[EdgePatch], Iterator[Intervention]],
    blocks: tuple[int, ...] = (BASE, SOURCE),
) -> Logits:
    found = []
    for _, some in _batches(studied, patch, len(blocks)):
        hooks = torch_hooks(list(edits(some)))
        inputs = np.concatenate([some.source if block == SOURCE else some.base for block in blocks])
        found.append(studied.logits(hooks, inputs)[: len(some)])
    return np.concatenate(found)


def _batches(studied: StudiedModel, patch: EdgePatch, n_blocks: int) -> Iterator[tuple[slice, EdgePatch]]:
    size = max(1, studied.batch // n_blocks)
    for start in range(0, len(patch), size):
        yield (rows := slice(start, start + size)), patch.of(rows)


def _layers(studied: StudiedModel, heads: Collection[Head] | None) -> list[int]:
    return studied.attending_layers if heads is None else sorted({layer for layer, _ in heads})


def _edges(studied: StudiedModel, layer: int, patch: EdgePatch, heads: Collection[Head] | None) -> Edges:
    where = where_patched(studied, patch) & in_heads(studied, layer, heads)
    return edges_of(studied, layer, patch.part, where)
