"""Subspaces learned by gradient descent: distributed alignment search.

Source: Geiger et al. 2024, "Finding Alignments Between Interpretable Causal Variables and Distributed Neural
Representations" (DAS). The map is a projection, one at each position, orthogonal where the stream has unit spread,
and the model stays as it is. A search learns on some pairs and stops by others: with few of them it would go on to
learn these alone. It goes two ways, of which neither is always the better one (see `descent`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.claims.counterfactuals import sayable
from rasplens.compare.claims.interchange.coordinates import Subspaces, Whitened
from rasplens.compare.claims.interchange.descent import Loss, first_order, followed, second_order
from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model import random_streams
from rasplens.model.interventions import Subspace, exchanged
from rasplens.tasks.task import NOT_ASKED

PROMISING = 0.3
"""Where the first way down gets less far than this, the second is not tried."""

RANK = 8
"""The rank of a search that starts at random, where the stream varies along more directions."""


@dataclass(frozen=True, eq=False)
class Search:
    """The result of a search.

    Attributes:
        subspaces: By position: those of the step with the best score on the pairs that it stops by.
        score: That score.
        fitted: That of a last step on the pairs that it learns on: how far these can be had at all.
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
        studied: The model; it has to answer by logits. Answers that it has no logit for are not learned.
        pairs: The pairs: two of three to learn on, the third to stop by.
        point: A hook point of the residual stream.
        start: Where to start, by position; positions without a subspace start at random.
        seed: Of that.
        steps: Of gradient descent without getting better, after which it ends.
    """
    rows = np.arange(len(pairs.base))
    others, pairs = pairs.of(rows % 3 == 2), pairs.of(rows % 3 < 2)
    asked, known = sorted({*pairs.positions, *start}), stream_axes(studied, point)
    axes = {position: known[position] for position in asked if known[position].n_axes}
    if not axes or (sayable(pairs.expected, studied.vocabulary.columns) == NOT_ASKED).all():
        return Search({}, 0.0, 0.0)
    to, back = padded(axes)
    began = _start(start, axes, seed)
    of_basis = interchange_loss(studied, pairs, point, list(axes), to, back)

    def loss(coordinates: torch.Tensor) -> torch.Tensor:
        return of_basis(torch.linalg.qr(coordinates)[0])

    def score(coordinates: np.ndarray, on: InterchangePairs = others) -> float:
        return agreement(studied, on, point, _subspaces(axes, coordinates)).score

    ends = [followed(first_order(loss, began), began, score, steps)]
    if ends[0].score >= PROMISING:
        # A step of the second order goes further, and takes as long as two of the first.
        ends.append(followed(second_order(loss, began), began, score, steps // 2))
    best = max(ends, key=lambda end: end.score)
    return Search(_subspaces(axes, best.best), best.score, max(score(end.last, pairs) for end in ends))


def _subspaces(axes: Mapping[int, Whitened], coordinates: np.ndarray) -> dict[int, Subspace]:
    bases = np.linalg.qr(coordinates)[0]
    return {
        position: own.subspace(basis[: own.n_axes])
        for (position, own), basis in zip(axes.items(), bases, strict=True)
    }


def interchange_loss(
    studied: StudiedModel,
    pairs: InterchangePairs,
    point: str,
    positions: Sequence[int],
    to: Float[np.ndarray, "pos width axis"],
    back: Float[np.ndarray, "pos axis width"],
) -> Loss:
    """How far the model is from the program's answers on the pairs, in nats.

    Args:
        studied: The model; it has to answer by logits.
        pairs: The pairs.
        point: A hook point of the residual stream.
        positions: Where it is interchanged.
        to: From the stream to its axes, position by position.
        back: From them to the stream.

    Returns:
        A function of what is interchanged, in these axes: directions in columns, `[position, axis, rank]`,
        orthonormal, or shorter where only part of what lies along one is.
    """
    columns = studied.vocabulary.columns
    assert columns is not None
    expected = sayable(pairs.expected, columns)
    stream, asked = studied.activation(point), torch.as_tensor(expected != NOT_ASKED)
    wanted = torch.as_tensor(columns[np.maximum(expected, 0)])[asked]
    source = torch.as_tensor(stream[pairs.source][:, positions]).transpose(0, 1)
    intervened = torch.as_tensor(pairs.intervened[:, positions].T)[..., None]
    read, write = (torch.as_tensor(part, dtype=source.dtype) for part in (to, back))
    places = torch.tensor([studied.at(position) for position in positions])

    def loss(basis: torch.Tensor) -> torch.Tensor:
        basis = basis.to(source.dtype)

        def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
            base = stream[:, places].transpose(0, 1)
            there = exchanged(base, source, read @ basis, write.mT @ basis)
            return stream.index_copy(1, places, torch.where(intervened, there, base).transpose(0, 1))

        logits = studied.run([(point, take)], pairs.base)
        return torch.nn.functional.cross_entropy(logits[asked], wanted)

    return loss


def padded(
    axes: Mapping[int, Whitened],
) -> tuple[Float[np.ndarray, "pos width axis"], Float[np.ndarray, "pos axis width"]]:
    """From the stream to its axes and back, position by position; where one has fewer axes, the rest is zero."""
    most = max(own.n_axes for own in axes.values())
    to = np.stack([np.pad(own.to, ((0, 0), (0, most - own.n_axes))) for own in axes.values()])
    return to, np.stack([np.pad(own.back, ((0, most - own.n_axes), (0, 0))) for own in axes.values()])


def _start(start: Subspaces, axes: Mapping[int, Whitened], seed: int) -> Float[np.ndarray, "pos axis rank"]:
    """Where to start, filled up at random to one rank."""
    rng = random_streams.rng(seed, "distributed alignment")
    counts = [own.n_axes for own in axes.values()]
    ranks = [start[position].rank for position in axes if position in start]
    rank, most = min([*counts, max(ranks, default=RANK)]), max(counts)
    coordinates = rng.normal(size=(len(axes), most, rank)) / np.sqrt(most)
    for i, (position, own) in enumerate(axes.items()):
        coordinates[i, own.n_axes :] = 0
        if position in start:
            mapped = (own.back @ start[position].read)[:, :rank]
            coordinates[i, : own.n_axes, : mapped.shape[1]] = mapped
    return coordinates
