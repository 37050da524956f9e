"""A model on some inputs: its own answers, and its answers with heads or attention edges taken from others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.claims.edges.attention_scores import of_heads, projection, scale_of_scores, why_not_patchable
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.hook_points import act_name
from rasplens.model.interventions import Edges, Intervention, Replace, torch_hooks

NEAR_START = 0.1
"""A score is as high as a start token's if it is below it by no more than this share of the lowest one."""

HeadEdges = Bool[np.ndarray, "input head query key"]
"""Edges of a layer's heads, between the task's positions."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A model on the inputs that a search looks at.

    Attributes:
        studied: The model.
        sources: Orders of the inputs: another one in the place of each, to take activations from.
    """

    studied: StudiedModel
    sources: Sequence[Int[np.ndarray, " input"]]

    def __len__(self) -> int:
        return self.studied.n_inputs

    @cached_property
    def answers(self) -> Int[np.ndarray, "input answer"]:
        """The model's answers, as the task's codes."""
        return self.studied.answers()

    def kept(self, interventions: Sequence[Intervention]) -> float:
        """The share of the answers that stay under interventions."""
        answers = self.studied.codes(self.studied.logits(torch_hooks(interventions)))
        asked = self.studied.asked
        return float((answers == self.answers)[asked].mean())

    def head_elsewhere(self, layer: int, heads: Sequence[int], position: int) -> Replace:
        """Return what heads gather at one position, taken from other inputs."""
        point = act_name("z", layer)
        z = self.studied.whole(point)
        where = np.zeros(z.shape[:3], dtype=bool)
        where[:, self.studied.at(position), list(heads)] = True
        return Replace(point, torch.as_tensor(z[self.sources[0]]), where)

    def values_elsewhere(
        self, layer: int, edges: HeadEdges, source: Int[np.ndarray, "input pos"] | Int[np.ndarray, " input"]
    ) -> Edges:
        """Values along edges as they are on other inputs: of each input one for all positions, or one for each."""
        read_at = {"v": projection(self.studied, layer, "v")}
        values = self.studied.whole(read_at["v"])
        theirs = values.copy()
        places = np.array(self.studied.vocabulary.positions)
        by_position = source if source.ndim == 2 else np.repeat(source[:, None], len(places), axis=1)
        theirs[:, places] = values[by_position, places[None]]
        where = np.zeros((*edges.shape[:2], *values.shape[1:2] * 2), dtype=bool)
        where[np.ix_(np.arange(len(edges)), np.arange(edges.shape[1]), places, places)] = edges
        return Edges(layer, "values", torch.as_tensor(theirs), torch.as_tensor(where), read_at=read_at)

    def attention(self, layer: int, heads: Sequence[int]) -> Float[np.ndarray, "input query key"]:
        """The mean attention of some heads between the task's positions; a start token gets the rest."""
        return np.asarray(self.studied.pattern(layer)[:, list(heads)].mean(axis=1))

    def above_start(self, layer: int, heads: Sequence[int]) -> Float[np.ndarray, "input query key"] | None:
        """The share of some heads that select a key, by its score beside a start token's; None without one.

        A key is selected if its score is no lower, or hardly: heads that count give both the same.
        """
        scores = self.studied.whole(act_name("attn_scores", layer))[:, list(heads)]
        places = list(self.studied.vocabulary.positions)
        if not places[0]:
            return None
        start = scores[:, :, places][..., : places[0]].max(axis=-1, keepdims=True)
        beside = np.where(self.studied.task.visible, scores[:, :, places][..., places] - start, np.nan)
        return np.asarray((beside > _least(beside)).mean(axis=1))

    def selected_at_own(
        self, layer: int, heads: Sequence[int], source: Int[np.ndarray, " input"]
    ) -> Float[np.ndarray, "input pos"] | None:
        """How far queries of other inputs select the key at their position, from 0 to 1.

        There a key meets a query that has another token: no input has both, and interventions do. It is selected
        if its score is above a start token's; without one, by exp(score − highest score of the query's own row).

        Returns:
            None if scores are not queries times keys.
        """
        places = list(self.studied.vocabulary.positions)
        if why_not_patchable(self.studied):
            return None
        query, key = (of_heads(self.studied, layer, letter)[:, :, list(heads)] for letter in "qk")
        query = query[:, places] * scale_of_scores(self.studied, layer)
        if not places[0]:
            seen = self.studied.task.visible[:, None]
            highest = np.where(seen, np.einsum("iphd,ikhd->iphk", query, key[:, places]), -np.inf).max(axis=3)
            own = np.einsum("iphd,iphd->iph", query[source], key[:, places]) - highest[source]
            return np.asarray(np.exp(np.minimum(own, 0)).mean(axis=2))
        start = np.einsum("iphd,ishd->ihps", query, key[:, : places[0]]).max(axis=3, keepdims=True)
        within = np.einsum("iphd,ikhd->ihpk", query, key[:, places]) - start
        least = _least(np.where(self.studied.task.visible, within, np.nan))[:, :, :, 0]
        own = np.einsum("iphd,iphd->ihp", query[source], key[:, places]) - start[source][..., 0]
        return np.asarray((own > least).mean(axis=1))

    def edges_of(self, heads: Sequence[int], edges: Bool[np.ndarray, "input query key"]) -> HeadEdges:
        """Return edges as those of some heads, with none of the others."""
        found = np.zeros((len(edges), self.studied.model.cfg.n_heads, *edges.shape[1:]), dtype=bool)
        found[:, list(heads)] = edges[:, None]
        return found

    def kept_with_mean_values(self, by_layer: Mapping[int, HeadEdges]) -> float:
        """Return the share of the answers that stay with values along edges at the mean of all of them."""
        means = []
        for layer, edges in by_layer.items():
            elsewhere = self.values_elsewhere(layer, edges, self.sources[0])
            values = self.studied.whole_values(layer)
            mean = np.broadcast_to(values[:, self.studied.places].mean(axis=(0, 1)), values.shape)
            means.append(replace(elsewhere, value=torch.as_tensor(mean.copy())))
        return self.kept(means)

    def kept_with_values(
        self,
        by_layer: Mapping[int, HeadEdges],
        sources: Sequence[Int[np.ndarray, " input"]] | Sequence[Int[np.ndarray, "input pos"]],
    ) -> float:
        """The share of the answers that stay with values along edges from other inputs, the mean over these."""
        shares = [
            self.kept([self.values_elsewhere(layer, edges, source) for layer, edges in by_layer.items()])
            for source in sources
        ]
        return float(np.mean(shares))


def _least(beside: Float[np.ndarray, "input head query key"]) -> Float[np.ndarray, "1 head 1 1"]:
    """By head, from which score beside a start token's on a key is selected; NaN where it is not visible."""
    return np.asarray(np.minimum(NEAR_START * np.nanmin(beside, axis=(0, 2, 3), keepdims=True), -1.0))
