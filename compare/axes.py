"""The five axes on one scale: 0 is what the controls reach, 1 what the compiled model reaches itself.

Every score comes with an interval: inputs are drawn anew (bootstrap, percentiles), models and sites stay.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from rasplens.compare.claims.answers import ALL, Behaviour
from rasplens.compare.claims.interchange.accuracy import Interchange
from rasplens.compare.evidence.ablation.measurement import Effects
from rasplens.compare.evidence.ablation.profiles import resampled_similarity
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.evidence.attention.concordance import concordance
from rasplens.compare.evidence.attention.heads import ByInput, HeadSimilarities
from rasplens.compare.evidence.subspaces.decodability import Decodability, best_points
from rasplens.compare.pairing.pairing import Pairing
from rasplens.model import random_streams

AxisName = Literal["behaviour", "interchange", "attention", "ablation", "subspaces"]

AXES: tuple[AxisName, ...] = get_args(AxisName)

ROOM = 0.01
"""A control closer than this to the ceiling leaves no room for a score."""

LEVEL = 0.95
"""Confidence of the intervals."""


@dataclass(frozen=True)
class Axis:
    """One axis of evidence.

    Attributes:
        name: One of `AXES`.
        score: In [0, 1]: 0 is no more than the controls reach, 1 the ceiling. NaN if the axis has no score.
        low: The lower end of its 95 % interval over inputs.
        high: The upper end.
        note: Why there is no score, or what it is made of.
    """

    name: AxisName
    score: float
    low: float
    high: float
    note: str

    @property
    def has_score(self) -> bool:
        """Whether there is a score."""
        return not np.isnan(self.score)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, None for NaN."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def above(score: Any, control: Any) -> Any:
    """A score on the scale from its control (0) to 1, cut off at both ends."""
    room = np.maximum(1 - np.asarray(control, dtype=float), 1e-9)
    return np.clip((np.asarray(score, dtype=float) - control) / room, 0.0, 1.0)


def bootstrapped(
    name: AxisName,
    note: str,
    n: int,
    statistic: Callable[[Float[np.ndarray, "draw input"]], np.ndarray],
    seed: int,
    draws: int,
) -> Axis:
    """An axis whose score is a statistic of weighted inputs.

    Args:
        name: Of the axis.
        note: What the score is made of.
        n: The number of inputs.
        statistic: From weights of the inputs to the score for each draw.
        seed: Of the bootstrap.
        draws: How many bootstrap samples the interval rests on.
    """
    rng = random_streams.rng(seed, "axis intervals")
    weights = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
    score = float(statistic(np.ones((1, n)))[0])
    if np.isnan(score):
        return without_score(name, note)
    resampled = statistic(weights)
    low, high = np.nanquantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Axis(name, score, float(min(low, score)), float(max(high, score)), note)


def without_score(name: AxisName, why: str) -> Axis:
    """An axis without a score, and why."""
    return Axis(name, float("nan"), float("nan"), float("nan"), why)


def _means(values: Float[np.ndarray, "row input"], weights: Float[np.ndarray, "draw input"]) -> np.ndarray:
    """Weighted means `[row, draw]` that leave NaN out."""
    known = ~np.isnan(values)
    total = known.astype(np.float64) @ weights.T
    sums = np.where(known, values, 0.0) @ weights.T
    return np.where(total > 0, sums / np.where(total > 0, total, 1), np.nan)


def behaviour_axis(found: Behaviour, seed: int, draws: int) -> Axis:
    """Agreement of answers, above an untrained model's."""
    if not found.agrees.shape[1]:
        few = ALL in set(found.table["inputs"])
        why = "too few inputs are held out to sample" if few else "the program gives none of the task's answers"
        return without_score("behaviour", why)

    def statistic(weights: np.ndarray) -> np.ndarray:
        learned, untrained = _means(found.agrees, weights)
        return above(learned, untrained)

    note = "agreement with the program's answers, above an untrained model's"
    return bootstrapped("behaviour", note, found.agrees.shape[1], statistic, seed, draws)


def interchange_axis(found: Sequence[Interchange], seed: int, draws: int) -> Axis:
    """Interchange-intervention accuracy above its best control, of the variable where that is least."""
    if not found:
        return without_score("interchange", "no variable between input and output that can be interchanged")
    parts = [
        (one.variable, np.stack([one.accuracy.iia, one.accuracy.specificity]), one.control)
        for one in found
        if 1 - one.control >= ROOM
    ]
    if not parts:
        return without_score("interchange", "for every variable a control reaches the ceiling")

    def statistic(weights: np.ndarray) -> np.ndarray:
        # Each variable has pairs of its own, and as many of the weights.
        scores = [above(_means(pairs, weights[:, : pairs.shape[1]]).min(axis=0), c) for _, pairs, c in parts]
        return np.min(scores, axis=0)

    scored = [name for name, *_ in parts]
    without = [one.variable for one in found if one.variable not in scored]
    note = f"the lowest interchange score of {', '.join(scored)}, above its best control"
    if without:
        note += f"; for {', '.join(without)} a control reaches the ceiling"
    return bootstrapped("interchange", note, max(pairs.shape[1] for _, pairs, _ in parts), statistic, seed, draws)


def attention_axis(pairing: Pairing, found: HeadSimilarities, seed: int) -> Axis:
    """The score of the compiled head that is matched worst; 0 if one is not matched at all.

    A head attends like the one it is matched with as far as both hold: its rows are similar, above uniform
    attention, and it changes over inputs as that does. A compiled head that attends uniformly itself has no score.
    """
    heads = active_heads(pairing)
    if not heads:
        return without_score("attention", "no compiled head has an active query row that sees more than one key")

    def alike(one: ByInput, weights: np.ndarray) -> np.ndarray:
        similar = above(*_means(np.stack([one.similarity, one.uniform]), weights))
        if 1 - np.nanmean(one.uniform) < ROOM:
            similar = np.full(len(weights), np.nan)
        return np.fmin(similar, np.clip(concordance(one.moments @ weights.T), 0, 1))

    def statistic(weights: np.ndarray) -> np.ndarray:
        scores = [
            alike(found.by_input[one.head], weights) if one.head in found.by_input else np.zeros(len(weights))
            for one in heads
        ]
        return np.fmin.reduce(scores)

    note = f"the least similar of {len(heads)} compiled heads and their matches, above uniform attention"
    return bootstrapped("attention", note, pairing.n_inputs, statistic, seed, pairing.config.bootstrap_draws)


def ablation_axis(pairing: Pairing, compiled: Effects, learned: Effects, seed: int) -> Axis:
    """The cosine of the ablation effects of edges, above that with the keys of each row permuted."""
    for studied in (pairing.reference, pairing.learned):
        if (n_heads := len(studied.heads)) > (most := pairing.config.most_heads):
            why = f"edges are not ablated in a model of {n_heads} heads (most_heads={most} in the config)"
            return without_score("ablation", why)
    n = min(effects.drops["zero"].shape[1] for effects in (compiled, learned))
    if not (compiled.drops["zero"] > 0).any():
        return without_score("ablation", "no edge of the compiled model has an ablation effect on these inputs")

    def statistic(weights: np.ndarray) -> np.ndarray:
        found = resampled_similarity(compiled, learned, "zero", weights, pairing.task.visible, seed)
        similarity, floor = np.clip(np.nan_to_num(found), 0, 1)
        return above(similarity, floor)

    note = "cosine of the ablation effects of attention edges, above that with the keys of each row permuted"
    return bootstrapped("ablation", note, n, statistic, seed, pairing.config.bootstrap_draws)


def subspaces_axis(found: Decodability, variables: list[str], seed: int, draws: int) -> Axis:
    """Held-out decodability at the best hook point, the mean over variables, above the best control."""
    mine = found.table[found.table["variable"].isin(variables)]
    if mine.empty:
        return without_score("subspaces", "no variable between input and output varies on these inputs")
    parts = []
    for best in best_points(mine).itertuples():
        rows = mine.index[(mine["variable"] == best.variable) & (mine["point"] == best.point)]
        parts.append(
            (np.stack([found.errors[row] for row in rows]), max(best.chance, best.shuffled, best.untrained))
        )

    def statistic(weights: np.ndarray) -> np.ndarray:
        scores = []
        for errors, control in parts:
            wrong, most = (errors[:, i] @ weights.T for i in (0, 1))
            scores.append(above(1 - (wrong / np.where(most > 0, most, 1)).mean(axis=0), control))
        return np.mean(scores, axis=0)

    note = f"linear decodability of {', '.join(variables)}, above the best control"
    return bootstrapped("subspaces", note, parts[0][0].shape[2], statistic, seed, draws)
