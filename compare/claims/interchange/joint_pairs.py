"""Inputs on which two variables are set at once, each as on inputs of its own, and the program's answers then."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.claims.counterfactuals import Setting, codes_when_set, counterfactual, sayable
from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.claims.posable import posable
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compile.variable import nearest
from rasplens.model.hook_points import when
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
        """Return the pairs without any question on either variable."""
        nothing = np.zeros_like(self.by_first)
        return replace(self, by_first=nothing, by_second=nothing)


def moves(pairing: Pairing, pairs: InterchangePairs, variable: str) -> bool:
    """Whether a variable changes in the compiled model, on any pair, when that of the pairs is interchanged."""
    other = pairing.compiled.variables[variable]
    before = nearest(other, other.read(pairing.reference.activation(other.written_at, pairs.base)))[0]
    setting = Setting(pairs.variable, pairs.source, pairs.intervened)
    return bool((before != codes_when_set(pairing, pairs.base, setting, variable)).any())


def posed_together(
    pairing: Pairing, first: InterchangePairs, second: InterchangePairs, rng: np.random.Generator
) -> JointPairs:
    """The first variable from another input wherever it matters, the second as in its own pairs."""
    source = first.source[rng.integers(len(first.base), size=len(second.base))]
    second_set = Setting(second.variable, second.source, second.intervened)
    return _posed(pairing, second.base, _set_everywhere(first, source), second_set)[0]


def posed_to_tell(
    pairing: Pairing, first: InterchangePairs, second: InterchangePairs, rng: np.random.Generator
) -> JointPairs | None:
    """Joint pairs that tell a second variable that was set from one that is computed again, from the first.

    Set later than the second, the first may overwrite it in a model that has both. So it is taken from inputs on
    which the second has the very value that it is set to: to overwrite it does no harm. A model that has no second
    variable, but all that it is computed from at the place of it, computes it again: from the first as it is set,
    and from the rest as it is where the second is taken from. Only answers that would be others then are asked
    about, and only the second variable at single positions.

    Returns:
        None if no answer tells, as where a position alone makes the second of the first.
    """
    where = _one_position_each(second.intervened, rng)
    rows, source = _sources_with_the_same_value(pairing, first, second, where, rng)
    if not len(rows):
        return None
    second_set = Setting(second.variable, second.source[rows], where[rows])
    again = _computed_again(pairing, _set_everywhere(first, source), second_set)
    kept = np.flatnonzero(again >= 0)
    kept = kept[np.unique(rows[kept], return_index=True)[1]]
    if not len(kept):
        return None
    rows, source, again = rows[kept], source[kept], again[kept]
    second_set = Setting(second.variable, second.source[rows], where[rows])
    posed, asked = _posed(pairing, second.base[rows], _set_everywhere(first, source), second_set)
    if not asked.any():
        return None
    first_set, second_set = posed.settings
    lost = Setting(second.variable, again[asked], second_set.intervened)
    otherwise, _ = counterfactual(pairing, posed.base, first_set, lost)
    tells = (otherwise != posed.expected) & (posed.expected != NOT_ASKED)
    return replace(posed, by_first=np.zeros_like(tells), by_second=tells) if tells.any() else None


def _one_position_each(
    intervened: Bool[np.ndarray, "pair pos"], rng: np.random.Generator
) -> Bool[np.ndarray, "pair pos"]:
    """Of each pair one of the positions."""
    chosen = np.where(intervened, rng.random(intervened.shape), -1).argmax(axis=1)
    return np.eye(intervened.shape[1], dtype=bool)[chosen]


def _sources_with_the_same_value(
    pairing: Pairing,
    first: InterchangePairs,
    second: InterchangePairs,
    where: Bool[np.ndarray, "pair pos"],
    rng: np.random.Generator,
) -> tuple[Int[np.ndarray, " found"], Int[np.ndarray, " found"]]:
    """Pairs of the second variable, and inputs that have the value it is set to, but another first variable."""
    own, other = pairing.codes[first.variable], pairing.codes[second.variable]
    inputs = np.flatnonzero(pairing.agrees)
    rows, found = [np.array([], dtype=int)], [np.array([], dtype=int)]
    for row, (source, at) in enumerate(zip(second.source, where.argmax(axis=1), strict=True)):
        fits = (other[inputs, at] == other[source, at]) & (own[inputs] != own[source]).any(axis=1)
        found.append(rng.permutation(inputs[fits])[:TRIED])
        rows.append(np.full(len(found[-1]), row))
    return np.concatenate(rows), np.concatenate(found)


def _computed_again(pairing: Pairing, first: Setting, second: Setting) -> Int[np.ndarray, " pair"]:
    """Inputs on which the second variable is what it would be, computed again where it is taken from.

    -1 where that is what it is set to, or no input has it.
    """
    pair, at = np.arange(len(second.source)), second.intervened.argmax(axis=1)
    again = codes_when_set(pairing, second.source, first, second.variable)[pair, at]
    codes = pairing.codes[second.variable]
    has_it = again[:, None] == codes[:, at].T
    is_other = (again != codes[second.source, at]) & has_it.any(axis=1)
    return np.where(is_other, has_it.argmax(axis=1), -1)


def _posed(
    pairing: Pairing, base: Int[np.ndarray, " pair"], first: Setting, second: Setting
) -> tuple[JointPairs, Bool[np.ndarray, " pair"]]:
    """The pairs that the task could ask for, and which these are."""
    posed, variables = posable(pairing), pairing.compiled.variables
    mixtures = posed.mixtures(min((variables[one.variable].written_at for one in (first, second)), key=when))
    expected, scores = counterfactual(pairing, base, first, second, watching=mixtures.hooks)
    asked, expected = (
        posed.are_posed(expected, scores, mixtures.rows),
        sayable(expected, pairing.learned.vocabulary.columns),
    )
    by_second, by_first = (
        (expected != counterfactual(pairing, base, alone)[0]) & (expected != NOT_ASKED)
        for alone in (first, second)
    )
    first_set, second_set = (
        Setting(one.variable, one.source[asked], one.intervened[asked]) for one in (first, second)
    )
    sets = first_set, second_set
    return JointPairs(base[asked], sets, expected[asked], by_first[asked], by_second[asked]), asked


def _set_everywhere(pairs: InterchangePairs, source: Int[np.ndarray, " pair"]) -> Setting:
    """A variable that is taken from some inputs wherever it matters."""
    return Setting(pairs.variable, source, np.tile(pairs.intervened.any(axis=0), (len(source), 1)))
