"""Subspaces learned by gradient descent: distributed alignment search.

Source: Geiger et al. 2024, "Finding Alignments Between Interpretable Causal Variables and Distributed Neural
Representations" (DAS). The map is an orthogonal projection, one at each position, and the model stays as it is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from rasplens.compare.subject import Subject

if TYPE_CHECKING:
    from rasplens.compare.interchange import Swaps

STEPS = 50

RATE = 0.05

RANK = 8
"""The least rank; the map's own may be higher."""


def learn_subspaces(
    subject: Subject, swapped: "Swaps", point: str, start: Mapping[int, np.ndarray], seed: int
) -> dict[int, np.ndarray]:
    """Subspaces whose interchange makes the model answer as the program does.

    Args:
        subject: The model; it has to answer by logits.
        swapped: The pairs to learn on.
        point: A hook point of the residual stream.
        start: Where to start, by position; positions without a subspace start at random.
        seed: Of that.
    """
    columns = subject.interface.columns
    assert columns is not None
    positions = sorted({*swapped.positions, *start})
    source = torch.as_tensor(subject.residual(point)[swapped.source][:, positions])
    taken = torch.as_tensor(swapped.taken[:, positions], dtype=source.dtype)[..., None]
    free = torch.tensor(_start(start, positions, source.shape[-1], seed), dtype=source.dtype, requires_grad=True)
    wanted = torch.as_tensor(columns[swapped.expected])
    places, tokens = [subject.at(position) for position in positions], subject.tokens[swapped.base]

    def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
        bases = torch.linalg.qr(free)[0]
        base = stream[:, places]
        shift = torch.einsum("bpd,pdk,pek->bpe", (source - base) * taken, bases, bases)
        return stream.index_copy(1, torch.tensor(places), base + shift)

    optimiser = torch.optim.Adam([free], lr=RATE)
    for _ in range(STEPS):
        logits = subject.model.run_with_hooks(tokens, fwd_hooks=[(point, take)])[:, subject.answer_places]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        (free.grad,) = torch.autograd.grad(loss, [free])
        optimiser.step()
    return dict(zip(positions, torch.linalg.qr(free.detach())[0].numpy(), strict=True))


def _start(start: Mapping[int, np.ndarray], positions: list[int], width: int, seed: int) -> np.ndarray:
    """The subspaces of the map, filled up at random to one rank: `[position, d_model, rank]`."""
    rng = np.random.default_rng([seed, 8])
    rank = min(width, max([RANK, *(start[position].shape[1] for position in positions if position in start)]))
    matrices = rng.normal(size=(len(positions), width, rank)) / np.sqrt(width)
    for matrix, position in zip(matrices, positions, strict=True):
        if position in start:
            matrix[:, : start[position].shape[1]] = start[position]
    return matrices
