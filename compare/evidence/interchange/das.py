"""Subspaces learned by gradient descent: distributed alignment search.

Source: Geiger et al. 2024, "Finding Alignments Between Interpretable Causal Variables and Distributed Neural
Representations" (DAS). The map is an orthogonal projection, one at each position, and the model stays as it is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.models.studied_model import Subject

if TYPE_CHECKING:
    from rasplens.compare.evidence.interchange.accuracy import Swaps

STEPS = 50

RATE = 0.05

RANK = 8
"""The least rank, where the stream has as many directions; the map's own may be higher."""

USED = 0.01
"""A stream varies along a direction if its spread there is at least this share of that along the widest."""


def learn_subspaces(
    subject: Subject, swapped: "Swaps", point: str, start: Mapping[int, np.ndarray], seed: int
) -> dict[int, np.ndarray]:
    """Subspaces whose interchange makes the model answer as the program does.

    They are sought among the directions that the stream itself varies along. So the search does not depend on the
    basis of the stream, and finds no dormant direction: one that nothing ever writes to, and that only the
    interchange brings to life (Makelov et al. 2023, "Is This the Subspace You Are Looking for?").

    Args:
        subject: The model; it has to answer by logits.
        swapped: The pairs to learn on.
        point: A hook point of the residual stream.
        start: Where to start, by position; positions without a subspace start at random.
        seed: Of that.
    """
    columns = subject.interface.columns
    assert columns is not None
    stream = subject.residual(point)
    axes = {position: principal_axes(stream[:, position]) for position in sorted({*swapped.positions, *start})}
    axes = {position: directions for position, directions in axes.items() if directions.shape[1]}
    positions = list(axes)
    if not positions:
        return {}
    source = torch.as_tensor(stream[swapped.source][:, positions])
    taken = torch.as_tensor(swapped.taken[:, positions], dtype=source.dtype)[..., None]
    directions, coordinates = (torch.tensor(part, dtype=source.dtype) for part in _start(start, axes, seed))
    coordinates.requires_grad_()
    wanted = torch.as_tensor(columns[swapped.expected])
    places, tokens = [subject.at(position) for position in positions], subject.tokens[swapped.base]

    def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
        bases, base = directions @ torch.linalg.qr(coordinates)[0], stream[:, places]
        shift = torch.einsum("bpd,pdk,pek->bpe", (source - base) * taken, bases, bases)
        return stream.index_copy(1, torch.tensor(places), base + shift)

    optimiser = torch.optim.Adam([coordinates], lr=RATE)
    for _ in range(STEPS):
        logits = subject.run(tokens, [(point, take)])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        (coordinates.grad,) = torch.autograd.grad(loss, [coordinates])
        optimiser.step()
    bases = directions @ torch.linalg.qr(coordinates.detach())[0]
    return dict(zip(positions, bases.numpy(), strict=True))


def principal_axes(stream: Float[np.ndarray, "input d_model"]) -> Float[np.ndarray, "d_model axis"]:
    """The directions that a stream varies along, the widest first, each pointing to its longer tail."""
    centred = stream.astype(np.float64) - stream.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    used = directions[sizes > USED * sizes.max(initial=0)] if sizes.max(initial=0) > 0 else directions[:0]
    tails = ((centred @ used.T) ** 3).sum(axis=0)
    return (used * np.where(tails < 0, -1, 1)[:, None]).T


def _start(
    start: Mapping[int, np.ndarray], axes: Mapping[int, np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The axes `[position, d_model, axis]`, and in them the map's subspaces, filled up at random to one rank."""
    rng = np.random.default_rng([seed, 8])
    counts = [directions.shape[1] for directions in axes.values()]
    ranks = [start[position].shape[1] for position in axes if position in start]
    rank, width = min([*counts, max([RANK, *ranks])]), max(counts)
    padded = np.stack(
        [np.pad(directions, ((0, 0), (0, width - directions.shape[1]))) for directions in axes.values()]
    )
    coordinates = rng.normal(size=(len(axes), width, rank)) / np.sqrt(width)
    for i, (position, count) in enumerate(zip(axes, counts, strict=True)):
        coordinates[i, count:] = 0
        if position in start:
            mapped = (padded[i].T @ start[position])[:, :rank]
            coordinates[i, :, : mapped.shape[1]] = mapped
    return padded, coordinates
