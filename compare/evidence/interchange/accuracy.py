"""Fourth axis: does a variable of the program, put into the learned model, do there what it does in the program?

For a pair of inputs (base, source), the interpreter runs the program on the base with one variable taken from the
source; that is what a model that implements the program answers when the same is done to it. In the learned
model the variable's subspace is what is taken from the source. Interchange-intervention accuracy (Geiger et al.
2021, "Causal Abstractions of Neural Networks") counts agreement over pairs whose right answer changes, at the
answers that change; answers that must not change are counted beside it.

Maps are linear: with powerful ones anything can be found in any network (Sutter et al. 2025). Where to look, and
in which subspace, is chosen on some pairs and scored on others. The controls are random subspaces of the same
rank, and the same search in an untrained model. Whether an interchange needs a path that the variable itself
never takes is seen from the parts of what it changes (see `active_directions`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from rasplens.compare.evidence.interchange.active_directions import read_directions, split
from rasplens.compare.evidence.interchange.das import distributed_alignment_search, principal_axes
from rasplens.compare.evidence.interchange.pairs import (
    InterchangePairs,
    interchange_pairs,
    interchangeable_positions,
)
from rasplens.compare.evidence.subspaces.representations import (
    Place,
    Representation,
    own_variables,
)
from rasplens.compare.models.pairing import Pairing
from rasplens.compare.models.studied_model import StudiedModel
from rasplens.model import random_streams

GOOD_ENOUGH = 0.95
"""Where the subspaces of the linear map score this high, DAS is not run."""

EMBEDDED = "blocks.0.hook_resid_pre"
"""Where variables are that the embedding holds."""

SiteMethod = Literal["linear map", "DAS"]

Subspaces = Mapping[int, Float[np.ndarray, "d_model rank"]]
"""By the task's position, an orthonormal basis."""


@dataclass(frozen=True)
class Agreement:
    """How a model's answers agree with the program's after an interchange, per pair.

    Attributes:
        iia: Share of the answers that change which are as expected: `[pair]`.
        specificity: Share of the others; 1 where there are none.
    """

    iia: Float[np.ndarray, " pair"]
    specificity: Float[np.ndarray, " pair"]

    @property
    def score(self) -> float:
        """The smaller of the two means: full-stream patching changes what must stay, none changes nothing."""
        return float(min(self.iia.mean(), self.specificity.mean()))


def agreement(
    studied: StudiedModel,
    pairs: InterchangePairs,
    point: str,
    subspaces: Subspaces | None,
    into: Subspaces | None = None,
) -> Agreement:
    """The agreement of a model's answers after one interchange, at one hook point.

    Args:
        studied: The model, on the pairing's inputs.
        pairs: The pairs.
        point: A hook point of the residual stream.
        subspaces: By position; None takes the whole stream at the variable's positions.
        into: What the coordinates in those are put into, by position, as a vector for each: `[d_model, rank]`; by
            default the same subspaces.
    """
    into = subspaces if into is None else into
    source = studied.residual(point)[pairs.source]

    def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
        stream = stream.clone()
        for position in pairs.positions:
            if subspaces is not None and position not in subspaces:
                continue
            place, rows = studied.at(position), torch.as_tensor(pairs.intervened[:, position])
            difference = torch.as_tensor(source[:, position], dtype=stream.dtype) - stream[:, place]
            if subspaces is not None and into is not None:
                basis, vectors = (
                    torch.as_tensor(part[position], dtype=stream.dtype) for part in (subspaces, into)
                )
                difference = difference @ basis @ vectors.T
            stream[:, place] += difference * rows[:, None]
        return stream

    logits = studied.logits(studied.tokens[pairs.base], [(point, take)])
    return _agreement(studied.vocabulary.codes(logits), pairs)


def accuracy_drop_without(studied: StudiedModel, point: str, subspaces: Subspaces) -> float:
    """The accuracy drop of a model when subspaces are held at their means over its inputs."""
    means = {position: studied.residual(point)[:, position].mean(axis=0) for position in subspaces}

    def hold(stream: torch.Tensor, hook: object) -> torch.Tensor:
        stream = stream.clone()
        for position, matrix in subspaces.items():
            basis, place = torch.as_tensor(matrix, dtype=stream.dtype), studied.at(position)
            difference = torch.as_tensor(means[position], dtype=stream.dtype) - stream[:, place]
            stream[:, place] += difference @ basis @ basis.T
        return stream

    return float(studied.right().mean() - (studied.edited_answers([(point, hold)]) == studied.targets).mean())


def _agreement(answers: np.ndarray, pairs: InterchangePairs) -> Agreement:
    right, changes = answers == pairs.expected, pairs.changes
    specificity = np.where(
        changes.all(axis=1), 1.0, (right & ~changes).sum(axis=1) / np.maximum(1, (~changes).sum(axis=1))
    )
    return Agreement((right & changes).sum(axis=1) / changes.sum(axis=1), specificity)


@dataclass(frozen=True, eq=False)
class Interchange:
    """The result of interchanging one variable in a learned model.

    Attributes:
        variable: Its name.
        point: The hook point that was chosen.
        method: "linear map" (the subspace of the linear map) or "DAS" (learned, see `das`).
        rank: The subspace's dimension, the mean over positions.
        accuracy: Interchange-intervention accuracy on the pairs to score on, per pair.
        active: The score of what it changes along directions which are read and move with the variable.
        dormant: That of the rest of what is read: an interchange that needs it is an illusion.
        random: The score of random subspaces of the same rank there.
        untrained: The score of the same search in an untrained model.
        full_stream: The score of full-stream patching there: it changes what must stay.
        ablated: The accuracy drop when the subspace is held at its mean over inputs.
        ablated_random: The same for random subspaces.
    """

    variable: str
    point: str
    method: SiteMethod
    rank: float
    accuracy: Agreement
    active: float
    dormant: float
    random: float
    untrained: float
    full_stream: float
    ablated: float
    ablated_random: float

    @property
    def control(self) -> float:
        """The higher of the scores of random subspaces and of an untrained model."""
        return max(self.random, self.untrained)


COLUMNS = (
    "variable", "point", "method", "rank", "pairs", "iia", "specificity", "score", "random", "untrained",
    "full_stream", "active", "dormant", "ablated", "ablated_random",
)  # fmt: skip


def tested_variables(pairing: Pairing) -> list[str]:
    """The variables between input and output: with directions of their own, neither input nor result.

    Taking the input, what the embedding says of it, or the result from elsewhere says nothing about how the one
    becomes the other.
    """
    return [
        name
        for name, variable in own_variables(pairing).items()
        if variable.written_at != EMBEDDED and name != pairing.compiled.output
    ]


def interchanges(
    pairing: Pairing,
    learned: Mapping[Place, Representation],
    untrained: Mapping[Place, Representation],
    seed: int,
) -> list[Interchange]:
    """The interchange of every variable that can be tested.

    Args:
        pairing: The models on the same inputs.
        learned: How the learned model represents the variables.
        untrained: How the control does.
        seed: Of pairs and random subspaces.
    """
    found = []
    for name in tested_variables(pairing):
        parts, positions = (pairing.fitting, pairing), interchangeable_positions(pairing, name)
        chosen, scored = (
            None if part is None else interchange_pairs(part, name, positions, seed) for part in parts
        )
        if chosen is not None and scored is not None:
            found.append(_interchange(pairing, chosen, scored, learned, untrained, seed))
    return found


def _interchange(
    pairing: Pairing,
    chosen: InterchangePairs,
    scored: InterchangePairs,
    learned: Mapping[Place, Representation],
    untrained: Mapping[Place, Representation],
    seed: int,
) -> Interchange:
    assert pairing.fitting is not None
    studied, control, steps = pairing.learned, pairing.untrained, pairing.config.das_steps
    point, method, subspaces = best_site(pairing.fitting.learned, chosen, learned, seed, steps)
    rng = random_streams.rng(seed, "interchange controls")
    stream = pairing.fitting.learned.residual(point)
    axes = {position: principal_axes(stream[:, position]) for position in subspaces}
    others = [_random_like(subspaces, axes, rng) for _ in range(pairing.config.random_subspaces)]
    moved = mapped_subspaces(learned, scored.variable, point)
    read = read_directions(pairing.fitting.learned, point, list(subspaces), seed)
    active, dormant = (
        agreement(studied, scored, point, subspaces, part).score for part in split(subspaces, read, moved)
    )
    there, _, theirs = best_site(
        pairing.fitting.untrained, chosen, untrained, seed, steps if method == "DAS" else 0
    )
    ranks = [basis.shape[1] for basis in subspaces.values()]
    return Interchange(
        variable=scored.variable,
        point=point,
        method=method,
        rank=float(np.mean(ranks)) if ranks else 0.0,
        accuracy=agreement(studied, scored, point, subspaces),
        active=active,
        dormant=dormant,
        random=float(np.mean([agreement(studied, scored, point, other).score for other in others])),
        untrained=agreement(control, scored, there, theirs).score,
        full_stream=agreement(studied, scored, point, None).score,
        ablated=accuracy_drop_without(studied, point, subspaces),
        ablated_random=float(np.mean([accuracy_drop_without(studied, point, other) for other in others])),
    )


def best_site(
    studied: StudiedModel,
    chosen: InterchangePairs,
    found: Mapping[Place, Representation],
    seed: int,
    das_steps: int,
) -> tuple[str, SiteMethod, dict[int, np.ndarray]]:
    """The hook point, the method and the subspaces with the highest score on the pairs to choose on.

    DAS runs only where the subspaces of the map score below `GOOD_ENOUGH`, and not with 0 steps.
    """
    points = studied.residual_points
    maps = [mapped_subspaces(found, chosen.variable, point) for point in points]
    scores = [agreement(studied, chosen, point, bases).score for point, bases in zip(points, maps, strict=True)]
    best = int(np.argmax(scores))
    mapped: tuple[str, SiteMethod, dict[int, np.ndarray]] = points[best], "linear map", maps[best]
    if not das_steps or scores[best] >= GOOD_ENOUGH or studied.vocabulary.columns is None:
        return mapped
    # With nothing to start from, the middle is where a variable between input and output has to be.
    start = best if scores[best] > 0 else len(points) // 2
    aligned = distributed_alignment_search(studied, chosen, points[start], maps[start], seed, das_steps)
    if agreement(studied, chosen, points[start], aligned).score <= scores[best]:
        return mapped
    return points[start], "DAS", aligned


def mapped_subspaces(found: Mapping[Place, Representation], variable: str, point: str) -> dict[int, np.ndarray]:
    """A variable's subspaces at one hook point, by position, where it has any."""
    bases = {place[2]: one.basis for place, one in found.items() if place[:2] == (variable, point)}
    return {position: basis for position, basis in bases.items() if basis.shape[1]}


def _random_like(
    subspaces: Subspaces, axes: Mapping[int, np.ndarray], rng: np.random.Generator
) -> dict[int, np.ndarray]:
    """Random subspaces of the same ranks, among the directions that the stream varies along.

    Where it varies along no more than those, there is no other subspace, and nothing is taken.
    """
    sizes = {position: (axes[position].shape[1], basis.shape[1]) for position, basis in subspaces.items()}
    return {
        position: axes[position] @ np.linalg.qr(rng.normal(size=(width, rank)))[0]
        for position, (width, rank) in sizes.items()
        if rank < width
    }


def interchange_table(found: Iterable[Interchange]) -> pd.DataFrame:
    """One row per variable: columns `COLUMNS`; shares in [0, 1]."""
    rows = []
    for one in found:
        iia, specificity = one.accuracy.iia, one.accuracy.specificity
        site = one.variable, one.point, one.method, one.rank
        scores = len(iia), iia.mean(), specificity.mean(), one.accuracy.score
        controls = one.random, one.untrained, one.full_stream, one.active, one.dormant
        rows.append((*site, *scores, *controls, one.ablated, one.ablated_random))
    return pd.DataFrame(rows, columns=list(COLUMNS))
