"""Causally relevant positions: those at which taking an activation away changes an answer's logits.

Found by trying, on a few inputs, with every position at once in a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.models.studied_model import Head, StudiedModel
from rasplens.compile import Variable

CHANGE = 1e-3
"""The least change of a logit that counts as one."""


@dataclass(frozen=True)
class Relevance:
    """Where the parts of a compiled model are causally relevant, as positions of the task.

    Attributes:
        variables: By the name of a variable.
        heads: By head, for what it writes.
    """

    variables: Mapping[str, tuple[int, ...]]
    heads: Mapping[Head, list[int]]


def relevance(studied: StudiedModel, variables: Mapping[str, Variable], n_inputs: int) -> Relevance:
    """Where the variables and heads of a compiled model are causally relevant, tried on its first inputs."""
    found = {name: tuple(relevant_positions(studied, one, n_inputs)) for name, one in variables.items()}
    return Relevance(found, relevant_rows(studied, n_inputs))


def relevant_rows(studied: StudiedModel, n_inputs: int) -> dict[Head, list[int]]:
    """For each head, the causally relevant positions of what it writes."""
    return {head: _relevant_positions(studied, n_inputs, *_zero_head(head)) for head in studied.heads}


def relevant_positions(studied: StudiedModel, variable: Variable, n_inputs: int) -> list[int]:
    """The positions at which a compiled variable is causally relevant."""
    projector = torch.as_tensor(variable.projector)

    def zero(residual: torch.Tensor, position: int) -> None:
        residual[:, position] -= residual[:, position] @ projector.to(residual.dtype)

    return _relevant_positions(studied, n_inputs, variable.written_at, zero)


def _zero_head(head: Head) -> tuple[str, Callable[[torch.Tensor, int], None]]:
    layer, index = head

    def zero(gathered: torch.Tensor, position: int) -> None:
        gathered[:, position, index] = 0

    return f"blocks.{layer}.attn.hook_z", zero


def _relevant_positions(
    studied: StudiedModel, n_inputs: int, point: str, zero: Callable[[torch.Tensor, int], None]
) -> list[int]:
    """The task's positions at which zeroing an activation changes an answer."""
    studied = studied.first(n_inputs)
    clean = studied.logits(studied.tokens)

    def change(groups: Sequence[Sequence[int]]) -> Float[np.ndarray, "group answer"]:
        """How much the logits change when each group of positions is zeroed."""
        n = studied.n_inputs

        def edit(activation: torch.Tensor, hook: object) -> torch.Tensor:
            activation = activation.clone()
            for i, positions in enumerate(groups):
                for position in positions:
                    zero(activation[i * n : (i + 1) * n], studied.at(position))
            return activation

        edited = studied.logits(studied.tokens.repeat(len(groups), 1), [(point, edit)])
        return np.abs(edited.reshape(len(groups), *clean.shape) - clean).max(axis=(1, 3))

    if point.startswith(f"blocks.{studied.n_layers - 1}.") and not point.endswith("hook_resid_pre"):
        # Behind the last attention a position reaches its own answer and no other: all are tried at once.
        reached = change([range(studied.n_pos)])[0] > CHANGE
        return sorted(
            position
            for position, is_relevant in zip(studied.task.loss_positions, reached, strict=True)
            if is_relevant
        )
    reached = change([[position] for position in range(studied.n_pos)]).max(axis=1) > CHANGE
    return [int(position) for position in np.flatnonzero(reached)]
