"""Causally relevant positions: an activation of another input or position changes an answer's logits there.

Zeroing would not do: the zero of a head may be just what it writes where it has nothing to say.
Found by trying, on a few inputs, with every position at once in a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.models.studied_model import Head, StudiedModel, z_point
from rasplens.compile import Variable

CHANGE = 1e-3
"""The least change of a logit that counts as one."""

Exchange = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From an activation at one position, and what it is elsewhere, `[input, ...]`: the first with a part of that."""


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
    found = {}
    for layer, head in studied.heads:
        found[layer, head] = _relevant_positions(studied, n_inputs, z_point(layer), _of_head(head))
    return found


def relevant_positions(studied: StudiedModel, variable: Variable, n_inputs: int) -> list[int]:
    """The positions at which a compiled variable is causally relevant."""
    projector = torch.as_tensor(variable.projector)

    def exchange(own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return own + (other - own) @ projector.to(own.dtype)

    return _relevant_positions(studied, n_inputs, variable.written_at, exchange)


def _of_head(head: int) -> Exchange:
    def exchange(own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        own = own.clone()
        own[:, head] = other[:, head]
        return own

    return exchange


def _relevant_positions(studied: StudiedModel, n_inputs: int, point: str, exchange: Exchange) -> list[int]:
    """The task's positions at which a part of an activation reaches an answer."""
    studied = studied.first(n_inputs)
    clean = studied.logits(studied.tokens)

    def change(groups: Sequence[Sequence[int]], dimension: int) -> Float[np.ndarray, "group answer"]:
        """How much the logits change when each group of positions has the part of the next input or position."""
        n = studied.n_inputs

        def edit(activation: torch.Tensor, hook: object) -> torch.Tensor:
            edited = activation.clone()
            for i, positions in enumerate(groups):
                own = activation[i * n : (i + 1) * n]
                others = own.roll(1, dims=dimension)
                for place in map(studied.at, positions):
                    edited[i * n : (i + 1) * n, place] = exchange(own[:, place], others[:, place])
            return edited

        logits = studied.logits(studied.tokens.repeat(len(groups), 1), [(point, edit)])
        return np.abs(logits.reshape(len(groups), *clean.shape) - clean).max(axis=(1, 3))

    def reached(groups: Sequence[Sequence[int]]) -> Float[np.ndarray, "group answer"]:
        return np.maximum(change(groups, 0), change(groups, 1))

    if point.startswith(f"blocks.{studied.n_layers - 1}.") and not point.endswith("hook_resid_pre"):
        # Behind the last attention a position reaches its own answer and no other: all are tried at once.
        is_relevant = reached([range(studied.n_pos)])[0] > CHANGE
        answers = zip(studied.task.loss_positions, is_relevant, strict=True)
        return sorted(position for position, relevant in answers if relevant)
    found = reached([[position] for position in range(studied.n_pos)]).max(axis=1) > CHANGE
    return [int(position) for position in np.flatnonzero(found)]
