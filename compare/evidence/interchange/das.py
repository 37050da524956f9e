"""Subspaces learned by gradient descent: distributed alignment search.

Source: Geiger et al. 2024, "Finding Alignments Between Interpretable Causal Variables and Distributed Neural
Representations" (DAS). The map is an orthogonal projection, one at each position, and the model stays as it is.
"""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.evidence.interchange.pairs import InterchangePairs
from rasplens.compare.models.studied_model import StudiedModel
from rasplens.model import random_streams

RATE = 0.05

RANK = 8
"""The least rank, where the stream has as many directions; the map's own may be higher."""

USED = 0.01
"""A stream varies along a direction if its spread there is at least this share of that along the widest."""


def distributed_alignment_search(
    studied: StudiedModel,
    pairs: InterchangePairs,
    point: str,
    start: Mapping[int, np.ndarray],
    seed: int,
    steps: int,
) -> dict[int, np.ndarray]:
    """Subspaces whose interchange makes the model answer as the program does.

    They are sought among the directions that the stream itself varies along. So the search does not depend on the
    basis of the stream, and finds no dormant direction: one that nothing ever writes to, and that only the
    interchange brings to life (Makelov et al. 2023, "Is This the Subspace You Are Looking for?").

    Args:
        studied: The model; it has to answer by logits.
        pairs: The pairs to learn on.
        point: A hook point of the residual stream.
        start: Where to start, by position; positions without a subspace start at random.
        seed: Of that.
        steps: Of gradient descent.
    """
    columns = studied.vocabulary.columns
    assert columns is not None
    stream = studied.residual(point)
    axes = {position: principal_axes(stream[:, position]) for position in sorted({*pairs.positions, *start})}
    axes = {position: directions for position, directions in axes.items() if directions.shape[1]}
    positions = list(axes)
    if not positions:
        return {}
    source = torch.as_tensor(stream[pairs.source][:, positions])
    intervened = torch.as_tensor(pairs.intervened[:, positions], dtype=source.dtype)[..., None]
    directions, coordinates = (torch.tensor(part, dtype=source.dtype) for part in _start(start, axes, seed))
    coordinates.requires_grad_()
    wanted = torch.as_tensor(columns[pairs.expected])
    places, tokens = [studied.at(position) for position in positions], studied.tokens[pairs.base]

    def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
        bases, base = directions @ torch.linalg.qr(coordinates)[0], stream[:, places]
        shift = torch.einsum("bpd,pdk,pek->bpe", (source - base) * intervened, bases, bases)
        return stream.index_copy(1, torch.tensor(places), base + shift)

    optimiser = torch.optim.Adam([coordinates], lr=RATE)
    for _ in range(steps):
        logits = studied.run(tokens, [(point, take)])
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
    rng = random_streams.rng(seed, "distributed alignment")
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
