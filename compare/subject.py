"""A model under comparison: hooked, with its positions and answers joined to the task's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.model.hooked import HookedModel

BATCH = 512
"""Sequences that run at once."""

FwdHook = tuple[str, Callable[..., torch.Tensor]]
Head = tuple[int, int]
"""A head as (layer, index)."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A hooked model and a batch of a task's inputs, in the model's own words.

    Attributes:
        model: The model.
        heads: The heads that compute something; a compiled model may have idle ones.
        tokens: The inputs as the model takes them: `[input, ctx]`.
        targets: The right answers of the task: `[input, answer]`.
        offset: The model's position of the task's position 0. What comes before is a BOS of the model's
            own, which the task does not know; it is left out throughout.
        answer_positions: The task's loss positions.
        read_answers: From logits `[batch, answer, logit]`, the codes of the task's answers; -1 for none.
    """

    model: HookedModel
    heads: tuple[Head, ...]
    tokens: torch.Tensor
    targets: np.ndarray
    offset: int
    answer_positions: tuple[int, ...]
    read_answers: Callable[[np.ndarray], np.ndarray]

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return len(self.tokens)

    @property
    def n_pos(self) -> int:
        """The number of the task's positions."""
        return self.tokens.shape[1] - self.offset

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return self.model.cfg.n_layers

    def heads_of(self, layer: int) -> list[int]:
        """The heads of a layer that compute something."""
        return [head for of_layer, head in self.heads if of_layer == layer]

    @property
    def residual_points(self) -> list[str]:
        """The hook points of the residual stream, in forward order, each state once."""
        points = ["blocks.0.hook_resid_pre"]
        for layer in range(self.n_layers):
            if not self.model.cfg.attn_only:
                points.append(f"blocks.{layer}.hook_resid_mid")
            points.append(f"blocks.{layer}.hook_resid_post")
        return points

    def first(self, n: int) -> "Subject":
        """The same model on the first inputs only."""
        return replace(self, tokens=self.tokens[:n], targets=self.targets[:n])

    def residual(self, point: str) -> Float[np.ndarray, "input pos d_model"]:
        """The residual stream at the task's positions."""
        return self._activations[point][:, self.offset :]

    def pattern(self, layer: int) -> Float[np.ndarray, "input head query key"]:
        """Attention between the task's positions: what a BOS of the model's own gets is left out."""
        return self._activations[pattern_point(layer)][:, :, self.offset :, self.offset :]

    def logits(
        self, tokens: torch.Tensor, hooks: Sequence[FwdHook] = ()
    ) -> Float[np.ndarray, "batch answer logit"]:
        """The logits at the answer positions, while hooks edit the model."""
        positions = [self.offset + position for position in self.answer_positions]
        with torch.no_grad():
            return self.model.run_with_hooks(tokens, fwd_hooks=list(hooks))[:, positions].numpy()

    def answers(self) -> Int[np.ndarray, "input answer"]:
        """The model's answers, unedited."""
        return np.concatenate([self.read_answers(self.logits(batch)) for batch in self.tokens.split(BATCH)])

    def right(self) -> Bool[np.ndarray, "input answer"]:
        """Which of the model's answers are right, unedited."""
        return self.answers() == self.targets

    @cached_property
    def _activations(self) -> dict[str, np.ndarray]:
        wanted = [*self.residual_points, *(pattern_point(layer) for layer in range(self.n_layers))]
        parts: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
        with torch.no_grad():
            for batch in self.tokens.split(BATCH):
                _, cache = self.model.run_with_cache(batch, names_filter=wanted)
                for name in wanted:
                    parts[name].append(cache[name].numpy())
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def pattern_point(layer: int) -> str:
    """The hook point of a layer's attention pattern."""
    return f"blocks.{layer}.attn.hook_pattern"
