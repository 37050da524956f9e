"""Fourth axis: does a variable of the program, put into the learned model, do there what it does in the program?

For a pair of inputs (base, source), the interpreter runs the program on the base with one variable taken from the
source; that is what a model that implements the program answers when the same is done to it. In the learned
model the variable's subspace is what is taken from the source. Interchange-intervention accuracy (Geiger et al.
2021, "Causal Abstractions of Neural Networks") counts agreement over pairs whose right answer changes, at the
answers that change; answers that must not change are counted beside it.

Maps are linear: with powerful ones anything can be found in any network (Sutter et al. 2025). Where to look, and
in which subspace, is chosen on some pairs and scored on others. The controls are random subspaces of the same
rank, and the same search in an untrained model. Whether an interchange needs a path that the variable itself
never takes is seen from the parts of what it changes (see `reading`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.evidence.interchange.active_directions import read_directions, split
from rasplens.compare.evidence.interchange.das import learn_subspaces, principal_axes
from rasplens.compare.evidence.subspaces.representations import (
    Place,
    Representation,
    determines,
    own_variables,
    varies,
)
from rasplens.compare.models.pairing import Pairing
from rasplens.compare.models.studied_model import Subject
from rasplens.compile import UndefinedValue, run

N_PAIRS = 100
"""Pairs whose answer changes, to choose on, and as many others to score on."""

MOST_TRIED = 2_000
"""Pairs that are drawn at most to find those."""

FEWEST = 10
"""With fewer pairs to score on, a variable is not tested."""

OFTEN = 5
"""How often tokens have to come, on average, for a variable to be seen to follow from them."""

GOOD_ENOUGH = 0.95
"""Subspaces of the map that score as high are not learned in another way."""

EMBEDDED = "blocks.0.hook_resid_pre"
"""Where variables are that the embedding holds."""

N_RANDOM = 5
"""Random subspaces that make up the control."""

Subspaces = Mapping[int, Float[np.ndarray, "d_model rank"]]
"""By the task's position, an orthonormal basis."""


@dataclass(frozen=True, eq=False)
class Swaps:
    """Pairs of inputs on which one variable is interchanged, and what the program says of them.

    Every other attempt takes the variable from the source at all positions, the others at a single one; those on
    which the program has no answer, or the same one, are left out.

    Attributes:
        variable: Its name.
        base: Inputs, by their place in the pairing.
        source: Others.
        taken: Where the variable is taken from the source: `[pair, pos]`.
        expected: The program's answers then, as the task's codes.
        changes: Where they differ from those on the base itself.
    """

    variable: str
    base: Int[np.ndarray, " pair"]
    source: Int[np.ndarray, " pair"]
    taken: Bool[np.ndarray, "pair pos"]
    expected: Int[np.ndarray, "pair answer"]
    changes: Bool[np.ndarray, "pair answer"]

    @property
    def positions(self) -> list[int]:
        """The positions at which the variable is taken from some source."""
        return np.flatnonzero(self.taken.any(axis=0)).tolist()


@dataclass(frozen=True)
class Agreement:
    """How a model's answers agree with the program's after an interchange, per pair.

    Attributes:
        changed: Share of the answers that change which are as expected: `[pair]`.
        kept: Share of the others; 1 where there are none.
    """

    changed: Float[np.ndarray, " pair"]
    kept: Float[np.ndarray, " pair"]

    @property
    def score(self) -> float:
        """The smaller of the two means: a swap of everything changes what must stay, none changes nothing."""
        return float(min(self.changed.mean(), self.kept.mean()))


def swappable(pairing: Pairing, variable: str) -> list[int]:
    """The positions at which a variable reaches an answer, varies, and can be taken from another input alone."""
    codes = pairing.codes[variable]
    return [
        position
        for position in pairing.live(variable)
        if varies(codes[:, position]) and not _says_what_the_token_says(pairing, variable, position)
    ]


def swaps(pairing: Pairing, variable: str, positions: Sequence[int], seed: int) -> Swaps | None:
    """Random pairs of a pairing's inputs on which the program's answer depends on a variable.

    Args:
        pairing: Whose inputs.
        variable: Its name.
        positions: Where it is taken from the source, see `swappable`.
        seed: Of the pairs.

    Returns:
        The pairs; None if too few can be found.
    """
    rng = np.random.default_rng([seed, 6])
    codes = pairing.codes[variable]
    found = []
    for attempt in range(MOST_TRIED if len(positions) else 0):
        base, source = rng.choice(pairing.n_inputs, 2, replace=False)
        taken = np.zeros(codes.shape[1], dtype=bool)
        taken[positions if attempt % 2 else rng.choice(positions)] = True
        if (codes[base] == codes[source])[taken].all():
            continue
        expected = counterfactual(pairing, variable, int(base), int(source), taken)
        if expected is not None and (expected != pairing.program_answers(int(base))).any():
            found.append((base, source, taken, expected, expected != pairing.program_answers(int(base))))
        if len(found) == N_PAIRS:
            break
    if len(found) < FEWEST:
        return None
    return Swaps(variable, *(np.stack(part) for part in zip(*found, strict=True)))


def _says_what_the_token_says(pairing: Pairing, variable: str, position: int) -> bool:
    """Whether a variable says at a position what the token there says, as the first token does at the first one.

    On no input does one come without the other then, and neither can be taken from elsewhere alone.
    """
    parts = [part for part in (pairing.fitting, pairing.varied) if part is not None] or [pairing]
    tokens = np.concatenate([part.ids[:, position] for part in parts])
    codes = np.concatenate([part.codes[variable][:, position] for part in parts])
    often = len(np.unique(tokens)) * OFTEN <= len(tokens)
    return often and determines(tokens, codes) and determines(codes, tokens)


def counterfactual(
    pairing: Pairing, variable: str, base: int, source: int, taken: Bool[np.ndarray, " pos"]
) -> Int[np.ndarray, " answer"] | None:
    """The program's answers on one input with a variable as it is on another, at some positions.

    None where the program has none, or one that the task does not know.
    """
    task, codes = pairing.task, pairing.codes[variable]
    values = (*pairing.compiled.variables[variable].values, None)
    chosen = [values[code] for code in np.where(taken, codes[source], codes[base])]
    tokens = task.sequences(pairing.ids[base : base + 1])[0]
    try:
        answers = run(pairing.compiled.program, tokens, mask=task.visible, set={variable: chosen})
    except UndefinedValue:
        return None
    known = np.array([task.answer_code(answers[position]) for position in task.loss_positions])
    return None if (known < 0).any() else known


def agreement(
    subject: Subject, swapped: Swaps, point: str, subspaces: Subspaces | None, into: Subspaces | None = None
) -> Agreement:
    """How a model answers with a variable's subspaces, at one hook point, taken from the source.

    Args:
        subject: The model, on the pairing's inputs.
        swapped: The pairs.
        point: A hook point of the residual stream.
        subspaces: By position; None takes the whole stream at the variable's positions.
        into: What the coordinates in those are put into, by position, as a vector for each: `[d_model, rank]`; by
            default the same subspaces.
    """
    into = subspaces if into is None else into
    source = subject.residual(point)[swapped.source]

    def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
        stream = stream.clone()
        for position in swapped.positions:
            if subspaces is not None and position not in subspaces:
                continue
            place, rows = subject.at(position), torch.as_tensor(swapped.taken[:, position])
            difference = torch.as_tensor(source[:, position], dtype=stream.dtype) - stream[:, place]
            if subspaces is not None and into is not None:
                basis, vectors = (
                    torch.as_tensor(part[position], dtype=stream.dtype) for part in (subspaces, into)
                )
                difference = difference @ basis @ vectors.T
            stream[:, place] += difference * rows[:, None]
        return stream

    logits = subject.logits(subject.tokens[swapped.base], [(point, take)])
    return _agreement(subject.interface.codes(logits), swapped)


def lost_without(subject: Subject, point: str, subspaces: Subspaces) -> float:
    """The token accuracy that a model loses when subspaces are held at their means over its inputs."""
    means = {position: subject.residual(point)[:, position].mean(axis=0) for position in subspaces}

    def hold(stream: torch.Tensor, hook: object) -> torch.Tensor:
        stream = stream.clone()
        for position, matrix in subspaces.items():
            basis, place = torch.as_tensor(matrix, dtype=stream.dtype), subject.at(position)
            difference = torch.as_tensor(means[position], dtype=stream.dtype) - stream[:, place]
            stream[:, place] += difference @ basis @ basis.T
        return stream

    return float(subject.right().mean() - (subject.edited_answers([(point, hold)]) == subject.targets).mean())


def _agreement(answers: np.ndarray, swapped: Swaps) -> Agreement:
    right, changes = answers == swapped.expected, swapped.changes
    kept = np.where(
        changes.all(axis=1), 1.0, (right & ~changes).sum(axis=1) / np.maximum(1, (~changes).sum(axis=1))
    )
    return Agreement((right & changes).sum(axis=1) / changes.sum(axis=1), kept)


@dataclass(frozen=True, eq=False)
class Interchange:
    """What interchanging one variable says of a learned model.

    Attributes:
        variable: Its name.
        point: The hook point that was chosen.
        method: "map" (the subspace of the linear map) or "aligned" (learned, see `alignment`).
        rank: The subspace's dimension, the mean over positions.
        accuracy: Interchange-intervention accuracy on the pairs to score on, per pair.
        active: The score of what it changes along directions which are read and move with the variable.
        dormant: That of the rest of what is read: an interchange that needs it is an illusion.
        random: The score of random subspaces of the same rank there.
        untrained: The score of the same search in an untrained model.
        everything: The score of taking the whole stream there: it changes what must stay.
        ablated: The token accuracy lost when the subspace is held at its mean over inputs.
        ablated_random: The same for random subspaces.
    """

    variable: str
    point: str
    method: str
    rank: float
    accuracy: Agreement
    active: float
    dormant: float
    random: float
    untrained: float
    everything: float
    ablated: float
    ablated_random: float

    @property
    def control(self) -> float:
        """The higher of the scores of random subspaces and of an untrained model."""
        return max(self.random, self.untrained)


COLUMNS = (
    "variable", "point", "method", "rank", "pairs", "changed", "kept", "score", "random", "untrained",
    "everything", "active", "dormant", "ablated", "ablated_random",
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
        parts, positions = (pairing.fitting, pairing), swappable(pairing, name)
        chosen, scored = (None if part is None else swaps(part, name, positions, seed) for part in parts)
        if chosen is not None and scored is not None:
            found.append(_interchange(pairing, chosen, scored, learned, untrained, seed))
    return found


def _interchange(
    pairing: Pairing,
    chosen: Swaps,
    scored: Swaps,
    learned: Mapping[Place, Representation],
    untrained: Mapping[Place, Representation],
    seed: int,
) -> Interchange:
    assert pairing.fitting is not None
    subject, control = pairing.learned, pairing.untrained
    point, method, subspaces = best_site(pairing.fitting.learned, chosen, learned, seed)
    rng = np.random.default_rng([seed, 7])
    stream = pairing.fitting.learned.residual(point)
    axes = {position: principal_axes(stream[:, position]) for position in subspaces}
    others = [_random_like(subspaces, axes, rng) for _ in range(N_RANDOM)]
    moved = mapped_subspaces(learned, scored.variable, point)
    read = read_directions(pairing.fitting.learned, point, list(subspaces), seed)
    active, dormant = (
        agreement(subject, scored, point, subspaces, part).score for part in split(subspaces, read, moved)
    )
    there, _, theirs = best_site(pairing.fitting.untrained, chosen, untrained, seed, align=method == "aligned")
    ranks = [basis.shape[1] for basis in subspaces.values()]
    return Interchange(
        variable=scored.variable,
        point=point,
        method=method,
        rank=float(np.mean(ranks)) if ranks else 0.0,
        accuracy=agreement(subject, scored, point, subspaces),
        active=active,
        dormant=dormant,
        random=float(np.mean([agreement(subject, scored, point, other).score for other in others])),
        untrained=agreement(control, scored, there, theirs).score,
        everything=agreement(subject, scored, point, None).score,
        ablated=lost_without(subject, point, subspaces),
        ablated_random=float(np.mean([lost_without(subject, point, other) for other in others])),
    )


def best_site(
    subject: Subject, chosen: Swaps, found: Mapping[Place, Representation], seed: int, align: bool = True
) -> tuple[str, str, dict[int, np.ndarray]]:
    """The hook point, the method and the subspaces with the highest score on the pairs to choose on.

    Subspaces are learned only where those of the map leave something to be desired.
    """
    points = subject.residual_points
    maps = [mapped_subspaces(found, chosen.variable, point) for point in points]
    scores = [agreement(subject, chosen, point, bases).score for point, bases in zip(points, maps, strict=True)]
    best = int(np.argmax(scores))
    mapped = points[best], "map", maps[best]
    if not align or scores[best] >= GOOD_ENOUGH or subject.interface.columns is None:
        return mapped
    # With nothing to start from, the middle is where a variable between input and output has to be.
    start = best if scores[best] > 0 else len(points) // 2
    aligned = learn_subspaces(subject, chosen, points[start], maps[start], seed)
    if agreement(subject, chosen, points[start], aligned).score <= scores[best]:
        return mapped
    return points[start], "aligned", aligned


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
        changed, kept = one.accuracy.changed, one.accuracy.kept
        site = one.variable, one.point, one.method, one.rank
        scores = len(changed), changed.mean(), kept.mean(), one.accuracy.score
        controls = one.random, one.untrained, one.everything, one.active, one.dormant
        rows.append((*site, *scores, *controls, one.ablated, one.ablated_random))
    return pd.DataFrame(rows, columns=list(COLUMNS))
