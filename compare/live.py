"""Where in a model something matters: the positions at which taking it away changes an answer's logits.

Found by trying, on a few inputs, with every position at once in a batch.
"""

from collections.abc import Callable

import numpy as np
import torch

from rasplens.compare.subject import Head, Subject
from rasplens.compile import Variable

LIVE_INPUTS = 48
"""Inputs on which it is tried."""

CHANGE = 1e-3
"""The least change of a logit that counts as one."""


def live_rows(subject: Subject) -> dict[Head, list[int]]:
    """For each head, the positions at which what it writes reaches an answer."""
    return {head: _live_positions(subject, *_silence_head(head)) for head in subject.heads}


def live_positions(subject: Subject, variable: Variable) -> list[int]:
    """The positions at which a compiled variable reaches an answer."""

    def silence(residual: torch.Tensor, position: int) -> None:
        residual[:, position, variable.directions] = 0

    return _live_positions(subject, variable.written_at, silence)


def _silence_head(head: Head) -> tuple[str, Callable[[torch.Tensor, int], None]]:
    layer, index = head

    def silence(gathered: torch.Tensor, position: int) -> None:
        gathered[:, position, index] = 0

    return f"blocks.{layer}.attn.hook_z", silence


def _live_positions(subject: Subject, point: str, silence: Callable[[torch.Tensor, int], None]) -> list[int]:
    """The task's positions at which silencing an activation changes an answer."""
    subject = subject.first(LIVE_INPUTS)
    n, n_pos = subject.n_inputs, subject.n_pos

    def edit(activation: torch.Tensor, hook: object) -> torch.Tensor:
        activation = activation.clone()
        for position in range(n_pos):
            silence(activation[position * n : (position + 1) * n], subject.at(position))
        return activation

    clean = subject.logits(subject.tokens)
    edited = subject.logits(subject.tokens.repeat(n_pos, 1), [(point, edit)])
    change = np.abs(edited.reshape(n_pos, *clean.shape) - clean).max(axis=(1, 2, 3))
    return [int(position) for position in np.flatnonzero(change > CHANGE)]
