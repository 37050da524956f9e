"""Independent trials: of each pair of inputs one answer counts; answers of one pair depend on one another."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.pairing.answered import AnsweredInputs


class PairsFrom(NamedTuple):
    """Which inputs may be drawn as the base, and which as the source, of a pair.

    Attributes:
        base: Of each input, whether it may be a base.
        source: Whether it may be a source.
    """

    base: Bool[np.ndarray, " input"]
    source: Bool[np.ndarray, " input"]


@dataclass(frozen=True, eq=False)
class Trials:
    """Trials of one claim, each on an input of its own.

    Attributes:
        inputs: Those that could be asked about.
        right: Which trials came out as the claim says.
        base: The input of each, by its place; of a pair, the base.
        answer: Which answer of the input counts.
        source: Of pairs, the source of each; None where there is none, or more than one.
        stopped: Whether their number depends on what came out.
    """

    inputs: AnsweredInputs
    right: Bool[np.ndarray, " trial"]
    base: Int[np.ndarray, " trial"]
    answer: Int[np.ndarray, " trial"]
    source: Int[np.ndarray, " trial"] | None = None
    stopped: bool = False

    def __len__(self) -> int:
        return len(self.right)

    def of(self, rows: Bool[np.ndarray, " trial"] | Int[np.ndarray, " row"] | slice) -> "Trials":
        """Some of the trials."""
        source = None if self.source is None else self.source[rows]
        right, base, answer = (part[rows] for part in (self.right, self.base, self.answer))
        return replace(self, right=right, base=base, answer=answer, source=source)

    def and_more(self, others: "Trials") -> "Trials":
        """These and other trials of the same claim; both have sources, or neither has."""
        sources = None if self.source is None else np.concatenate([self.source, others.source])
        right, base, answer = (
            np.concatenate([getattr(one, part) for one in (self, others)]) for part in ("right", "base", "answer")
        )
        return replace(self, right=right, base=base, answer=answer, source=sources)


def no_trials(inputs: AnsweredInputs) -> Trials:
    """No trial at all, where no pair of inputs can be asked about."""
    none = np.zeros(0, dtype=int)
    return Trials(inputs, none > 0, none, none, none)


def one_of_each(
    inputs: AnsweredInputs,
    base: Int[np.ndarray, " pair"],
    right: Bool[np.ndarray, "pair answer"],
    which: Bool[np.ndarray, "pair answer"],
    rng: np.random.Generator,
    source: Int[np.ndarray, " pair"] | None = None,
) -> Trials:
    """For each pair with any such answer, whether one of them, drawn at random, is right.

    Args:
        inputs: Those that pairs are of.
        base: The base of each pair, by its place.
        right: Which answers are as the claim says.
        which: Those that may count.
        rng: Draws them.
        source: The source of each pair, if there is one.
    """
    chosen = np.where(which, rng.random(which.shape), -1).argmax(axis=1)
    rows = np.flatnonzero(which.any(axis=1))
    answer = chosen[rows]
    sources = None if source is None else source[rows]
    return Trials(inputs, np.asarray(right[rows, answer]), base[rows], answer, sources)
