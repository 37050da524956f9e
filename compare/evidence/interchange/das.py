"""Subspaces learned by gradient descent: distributed alignment search.

Source: Geiger et al. 2024, "Finding Alignments Between Interpretable Causal Variables and Distributed Neural
Representations" (DAS). The map is a projection, one at each position, orthogonal where the stream has unit spread,
and the model stays as it is. A search learns on some pairs and stops by others: with few of them it would go on to
learn these alone.
"""

from dataclasses import dataclass

import numpy as np
import torch

from rasplens.compare.evidence.interchange.coordinates import Subspace, Subspaces, Whitened, whitened
from rasplens.compare.evidence.interchange.pairs import InterchangePairs
from rasplens.compare.evidence.interchange.patching import agreement
from rasplens.compare.models.studied_model import StudiedModel
from rasplens.model import random_streams

RATE = 0.05

EVERY = 5
"""After so many steps it is asked whether the subspaces are the best so far."""

RANK = 8
"""The rank of a search that starts at random, where the stream varies along more directions."""


@dataclass(frozen=True, eq=False)
class Search:
    """What a search found.

    Attributes:
        subspaces: By position: those of the step with the best score on the pairs that it stops by.
        score: That score.
        fitted: The score of the last step on the pairs that it learns on: how far these can be had at all.
    """

    subspaces: dict[int, Subspace]
    score: float
    fitted: float


def distributed_alignment_search(
    studied: StudiedModel,
    pairs: InterchangePairs,
    point: str,
    start: Subspaces,
    seed: int,
    steps: int,
) -> Search:
    """Subspaces whose interchange makes the model answer as the program does.

    They are sought among the directions that the stream itself varies along. So the search finds no dormant
    direction: one that nothing ever writes to, and that only the interchange brings to life (Makelov et al. 2023,
    "Is This the Subspace You Are Looking for?").

    Args:
        studied: The model; it has to answer by logits.
        pairs: The pairs: two of three to learn on, the third to stop by.
        point: A hook point of the residual stream.
        start: Where to start, by position; positions without a subspace start at random.
        seed: Of that.
        steps: Of gradient descent.
    """
    rows = np.arange(len(pairs.base))
    others, pairs = pairs.of(rows % 3 == 2), pairs.of(rows % 3 < 2)
    columns = studied.vocabulary.columns
    assert columns is not None
    stream = studied.activation(point)
    axes = {position: whitened(stream[:, position]) for position in sorted({*pairs.positions, *start})}
    axes = {position: own for position, own in axes.items() if own.n_axes}
    positions = list(axes)
    if not positions:
        return Search({}, 0.0, 0.0)
    source = torch.as_tensor(stream[pairs.source][:, positions])
    intervened = torch.as_tensor(pairs.intervened[:, positions], dtype=source.dtype)[..., None]
    to, back, coordinates = (torch.tensor(part, dtype=source.dtype) for part in _start(start, axes, seed))
    coordinates.requires_grad_()
    wanted = torch.as_tensor(columns[pairs.expected])
    places, tokens = [studied.at(position) for position in positions], studied.tokens[pairs.base]

    def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
        basis, base = torch.linalg.qr(coordinates)[0], stream[:, places]
        shift = torch.einsum("bpd,pdk,pke->bpe", (source - base) * intervened, to @ basis, basis.mT @ back)
        return stream.index_copy(1, torch.tensor(places), base + shift)

    def subspaces() -> dict[int, Subspace]:
        bases = torch.linalg.qr(coordinates.detach())[0].numpy()
        return {
            position: own.subspace(basis[: own.n_axes])
            for (position, own), basis in zip(axes.items(), bases, strict=True)
        }

    best = subspaces()
    score = agreement(studied, others, point, best).score
    optimiser = torch.optim.Adam([coordinates], lr=RATE)
    for step in range(1, steps + 1):
        logits = studied.run(tokens, [(point, take)])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        (coordinates.grad,) = torch.autograd.grad(loss, [coordinates])
        optimiser.step()
        if step % EVERY == 0 or step == steps:
            found = subspaces()
            if (reached := agreement(studied, others, point, found).score) > score:
                best, score = found, reached
    return Search(best, score, agreement(studied, pairs, point, subspaces()).score)


def _start(start: Subspaces, axes: dict[int, Whitened], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The axes `[position, width, axis]`, the way back, and where to start, filled up at random to one rank."""
    rng = random_streams.rng(seed, "distributed alignment")
    counts = [own.n_axes for own in axes.values()]
    ranks = [start[position].rank for position in axes if position in start]
    rank, most = min([*counts, max(ranks, default=RANK)]), max(counts)
    to = np.stack([np.pad(own.to, ((0, 0), (0, most - own.n_axes))) for own in axes.values()])
    back = np.stack([np.pad(own.back, ((0, most - own.n_axes), (0, 0))) for own in axes.values()])
    coordinates = rng.normal(size=(len(axes), most, rank)) / np.sqrt(most)
    for i, (position, own) in enumerate(axes.items()):
        coordinates[i, own.n_axes :] = 0
        if position in start:
            mapped = (own.back @ start[position].read)[:, :rank]
            coordinates[i, : own.n_axes, : mapped.shape[1]] = mapped
    return to, back, coordinates
