"""The effect of an intervention: how much of a model's own logit difference moves as the program predicts.

The model prefers its answer to another one by a difference of logits. Where the program says that an intervention
replaces the one by the other, the difference should turn round: twice as much moves. The share of that is 0 where
nothing moves, one half where the model is left between both answers, and 1 where it prefers the other answer as
much as it did its own. Where the program says that the answer stays, the share of what is left is taken.

Source: the logit difference of Wang et al. 2022 ("Interpretability in the Wild", section 3).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import bootstrap

from rasplens.compare.claims.trials.judging import CONFIDENCE, Share


@dataclass(frozen=True, eq=False)
class LogitDifferences:
    """Of each trial, which two logits of which answer are compared.

    Attributes:
        pair: The place of its pair.
        answer: Which answer.
        own: The logit of the model's answer on the base.
        other: That of another answer.
    """

    pair: Int[np.ndarray, " trial"]
    answer: Int[np.ndarray, " trial"]
    own: Int[np.ndarray, " trial"]
    other: Int[np.ndarray, " trial"]

    def __len__(self) -> int:
        return len(self.pair)

    def of(self, logits: Any) -> Any:
        """The differences, from logits `[pair, answer, logit]` in numpy or torch."""
        return logits[self.pair, self.answer, self.own] - logits[self.pair, self.answer, self.other]

    def within(self, rows: slice) -> "LogitDifferences":
        """Those of some pairs, by their place among these."""
        which = (rows.start <= self.pair) & (self.pair < rows.stop)
        pair, answer, own, other = (part[which] for part in (self.pair, self.answer, self.own, self.other))
        return LogitDifferences(pair - rows.start, answer, own, other)


@dataclass(frozen=True, eq=False)
class Effect:
    """By how much logit differences moved, in independent trials.

    Attributes:
        moved: By how much each moved as claimed.
        expected: By how much it should have.
    """

    moved: Float[np.ndarray, " trial"]
    expected: Float[np.ndarray, " trial"]

    def __len__(self) -> int:
        return len(self.moved)

    @property
    def share(self) -> float:
        """What moved of all that should have; NaN if nothing should."""
        return float(self.moved.sum() / total) if (total := self.expected.sum()) else float("nan")

    def interval(self, draws: int, rng: np.random.Generator, comparisons: int = 1) -> Share:
        """The share with the interval that covers 95 % over so many comparisons together, by the bootstrap."""
        return _interval((self.moved, self.expected), draws, rng, comparisons)

    def above(self, control: "Effect", draws: int, rng: np.random.Generator, comparisons: int = 1) -> Share:
        """By how much the share is larger than that of a control in the same trials, with its interval."""
        parts = self.moved, self.expected, control.moved, control.expected
        return _interval(parts, draws, rng, comparisons)


def _interval(parts: tuple[np.ndarray, ...], draws: int, rng: np.random.Generator, comparisons: int) -> Share:
    """A share of what moved, or the difference of two, in trials that are drawn together."""

    def of(*parts: np.ndarray, axis: int = -1) -> np.ndarray:
        moved, expected, *control = (part.sum(axis=axis) for part in parts)
        share = moved / expected
        return np.asarray(share - control[0] / control[1] if control else share)

    found = bootstrap(
        parts, of, n_resamples=draws, paired=True, vectorized=True, method="percentile", rng=rng,
        confidence_level=1 - (1 - CONFIDENCE) / comparisons,
    ).confidence_interval  # fmt: skip
    return Share(float(of(*parts)), float(found.low), float(found.high), len(parts[0]))


Difference = Float[np.ndarray, " trial"]


def turned(before: Difference, after: Difference) -> Effect:
    """The effect where another answer should take the place of the model's own."""
    return Effect(before - after, 2 * before)


def kept(before: Difference, after: Difference) -> Effect:
    """The effect where the answer should stay, and not turn into another."""
    return Effect(before + after, 2 * before)


def left(before: Difference, after: Difference) -> Effect:
    """The effect where the model should have its answer still."""
    return Effect(after, before)


def turned_of(effect: Effect, carried: float) -> Effect:
    """What turned, as a share of what some heads carry: all that could."""
    return Effect(effect.moved, carried * effect.expected)


def kept_of(effect: Effect, carried: float) -> Effect:
    """What was kept, of what some heads carry: the rest stays whatever becomes of these heads."""
    return Effect(effect.moved - (1 - carried) * effect.expected, carried * effect.expected)
