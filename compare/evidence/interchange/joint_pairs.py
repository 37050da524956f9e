"""Inputs on which two variables are set at once, each as on inputs of its own, and the program's answers then."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.evidence.interchange.pairs import (
    InterchangePairs,
    Setting,
    codes_when_set,
    counterfactual,
    sayable,
)
from rasplens.compare.evidence.posable import posable
from rasplens.compare.models.pairing import Pairing
from rasplens.tasks.task import NOT_ASKED

TRIED = 8
"""Inputs that the first variable is tried to be taken from, for each pair of the second one."""


@dataclass(frozen=True, eq=False)
class JointPairs:
    """Inputs on which two variables are interchanged at once, and what the program says of them.

    Attributes:
        base: Inputs, by their place in the pairing.
        settings: The two variables, each with its own sources.
        expected: The program's answers then, as the task's codes.
        by_first: Where the first variable makes a difference: with the second alone, the answer is another.
        by_second: Where the second one does.
    """

    base: Int[np.ndarray, " pair"]
    settings: tuple[Setting, Setting]
    expected: Int[np.ndarray, "pair answer"]
    by_first: Bool[np.ndarray, "pair answer"]
    by_second: Bool[np.ndarray, "pair answer"]

    def without_questions(self) -> "JointPairs":
        """The same, of which nothing is asked."""
        nothing = np.zeros_like(self.by_first)
        return replace(self, by_first=nothing, by_second=nothing)


def posed_together(
    pairing: Pairing, first: InterchangePairs, second: InterchangePairs, rng: np.random.Generator
) -> JointPairs:
    """The first variable from another input wherever it matters, the second as in its own pairs."""
    source = first.source[rng.integers(len(first.base), size=len(second.base))]
    return _posed(pairing, first, second, source)[0]


def posed_to_tell(
    pairing: Pairing, first: InterchangePairs, second: InterchangePairs, rng: np.random.Generator
) -> JointPairs | None:
    """Those that tell a second variable that was set from one that is computed again, from the first.

    Set later than the second, the first may overwrite it in a model that has both. So it is taken from inputs on
    which the second has the very value that it is set to: to overwrite it does no harm. A model that has no second
    variable, but all that it is computed from at the place of it, computes it again: from the first as it is set,
    and from the rest as it is where the second is taken from. Only answers that would be others then are asked
    about, and only the second variable at single positions.

    Returns:
        None if there are no such inputs, as where a position alone makes the second of the first.
    """
    second = _at_one_position(second, rng)
    rows, source = _alike(pairing, first, second, rng)
    if not len(rows):
        return None
    again = _computed_again(pairing, first, second.of(rows), source)
    rows, at = np.unique(np.where(again >= 0, rows, -1), return_index=True)
    rows, at = rows[rows >= 0], at[rows >= 0]
    if not len(rows):
        return None
    posed, asked = _posed(pairing, first, second.of(rows), source[at])
    first_set, second_set = posed.settings
    lost = Setting(second.variable, again[at][asked], second_set.intervened)
    otherwise, _ = counterfactual(pairing, posed.base, first_set, lost)
    tells = (otherwise != posed.expected) & (posed.expected != NOT_ASKED)
    return replace(posed, by_first=np.zeros_like(tells), by_second=tells)


def _at_one_position(pairs: InterchangePairs, rng: np.random.Generator) -> InterchangePairs:
    """The pairs with one of the positions at which the variable is taken from the source."""
    chosen = np.where(pairs.intervened, rng.random(pairs.intervened.shape), -1).argmax(axis=1)
    return replace(pairs, intervened=np.eye(pairs.intervened.shape[1], dtype=bool)[chosen])


def _alike(
    pairing: Pairing, first: InterchangePairs, second: InterchangePairs, rng: np.random.Generator
) -> tuple[Int[np.ndarray, " found"], Int[np.ndarray, " found"]]:
    """Pairs of the second variable, and inputs that have the value it is set to, but another first variable."""
    own, other, inputs = (
        pairing.codes[first.variable],
        pairing.codes[second.variable],
        np.flatnonzero(pairing.agrees),
    )
    rows, found = [np.array([], dtype=int)], [np.array([], dtype=int)]
    for row, (source, at) in enumerate(zip(second.source, second.intervened.argmax(axis=1), strict=True)):
        fits = (other[inputs, at] == other[source, at]) & (own[inputs] != own[source]).any(axis=1)
        found.append(rng.permutation(inputs[fits])[:TRIED])
        rows.append(np.full(len(found[-1]), row))
    return np.concatenate(rows), np.concatenate(found)


def _computed_again(
    pairing: Pairing, first: InterchangePairs, second: InterchangePairs, source: Int[np.ndarray, " pair"]
) -> Int[np.ndarray, " pair"]:
    """Inputs on which the second variable is what it would be, computed again; -1 where it would be the same.

    Also where no input has that value there.
    """
    pair, at = np.arange(len(source)), second.intervened.argmax(axis=1)
    setting = Setting(first.variable, source, _everywhere(first, len(source)))
    again = codes_when_set(pairing, second.source, setting, second.variable)[pair, at]
    codes = pairing.codes[second.variable]
    has_it = again[:, None] == codes[:, at].T
    is_other = (again != codes[second.source, at]) & has_it.any(axis=1)
    return np.where(is_other, has_it.argmax(axis=1), -1)


def _posed(
    pairing: Pairing, first: InterchangePairs, second: InterchangePairs, source: Int[np.ndarray, " pair"]
) -> tuple[JointPairs, Bool[np.ndarray, " pair"]]:
    """The pairs that the task could ask for, with sources of the first variable; and which these are."""
    settings = (
        Setting(first.variable, source, _everywhere(first, len(source))),
        Setting(second.variable, second.source, second.intervened),
    )
    expected, scores = counterfactual(pairing, second.base, *settings)
    asked, expected = posable(pairing).are_posed(expected, scores), sayable(pairing, expected)
    by_second, by_first = (
        (expected != counterfactual(pairing, second.base, alone)[0]) & (expected != NOT_ASKED)
        for alone in settings
    )
    first_set, second_set = (Setting(one.variable, one.source[asked], one.intervened[asked]) for one in settings)
    base = second.base[asked]
    return JointPairs(base, (first_set, second_set), expected[asked], by_first[asked], by_second[asked]), asked


def _everywhere(pairs: InterchangePairs, n: int) -> Bool[np.ndarray, "pair pos"]:
    """Wherever a variable matters."""
    return np.tile(pairs.intervened.any(axis=0), (n, 1))
