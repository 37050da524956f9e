"""Where in a model something matters: the positions at which taking it away changes an answer's logits.

Found by trying, on a few inputs, with every position at once in a batch.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.models.studied_model import Head, Subject
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
    clean = subject.logits(subject.tokens)

    def change(groups: Sequence[Sequence[int]]) -> Float[np.ndarray, "group answer"]:
        """How much the logits change when each group of positions is silenced."""
        n = subject.n_inputs

        def edit(activation: torch.Tensor, hook: object) -> torch.Tensor:
            activation = activation.clone()
            for i, positions in enumerate(groups):
                for position in positions:
                    silence(activation[i * n : (i + 1) * n], subject.at(position))
            return activation

        edited = subject.logits(subject.tokens.repeat(len(groups), 1), [(point, edit)])
        return np.abs(edited.reshape(len(groups), *clean.shape) - clean).max(axis=(1, 3))

    if point.startswith(f"blocks.{subject.n_layers - 1}.") and not point.endswith("hook_resid_pre"):
        # Behind the last attention a position reaches its own answer and no other: all are tried at once.
        reached = change([range(subject.n_pos)])[0] > CHANGE
        return sorted(
            position for position, is_live in zip(subject.task.loss_positions, reached, strict=True) if is_live
        )
    reached = change([[position] for position in range(subject.n_pos)]).max(axis=1) > CHANGE
    return [int(position) for position in np.flatnonzero(reached)]
