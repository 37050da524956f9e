"""Does attention depend on the input? Every pattern is replaced by its mean over inputs."""

from dataclasses import dataclass

import numpy as np
import torch

from rasplens.compare.subject.studied_model import FwdHook, StudiedModel
from rasplens.model.hook_points import act_name


@dataclass(frozen=True, eq=False)
class AveragedAttention:
    """The accuracy of a model whose attention no longer depends on the input.

    Attributes:
        clean: Token accuracy as it is, in [0, 1].
        averaged: Token accuracy with every pattern of every layer replaced by its mean, at the same time.
        deviation: By layer, the largest deviation of an attention weight from its mean, in [0, 1]; 0 where
            attention is the same on every input.
    """

    clean: float
    averaged: float
    deviation: tuple[float, ...]


def average_attention(studied: StudiedModel) -> AveragedAttention:
    """Accuracy with every attention pattern replaced by its mean over the model's inputs.

    Source: Farrell et al. 2025, training notebook. The means are those of the unedited model.
    """
    means, deviation = [], []
    for layer in range(studied.n_layers):
        patterns = studied.whole_pattern(layer)
        means.append(torch.as_tensor(patterns.mean(axis=0)))
        deviation.append(float(np.abs(patterns - patterns.mean(axis=0)).max(initial=0.0)))

    def average(pattern: torch.Tensor, hook: object, mean: torch.Tensor) -> torch.Tensor:
        return mean.to(pattern.dtype).expand_as(pattern)

    hooks: list[FwdHook] = [
        (act_name("pattern", layer), lambda pattern, hook, mean=mean: average(pattern, hook, mean))
        for layer, mean in enumerate(means)
    ]
    return AveragedAttention(float(studied.right().mean()), studied.edited_accuracy(hooks), tuple(deviation))
