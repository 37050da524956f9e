"""Pairs of inputs between which one variable of the program is interchanged, and what the program then answers.

For a pair (base, source), the compiled model runs on the base with the variable as it is on the source: the
counterfactual answers of any model that implements the program. Only such count as the task itself could ask for.

Source: Geiger et al. 2021, "Causal Abstractions of Neural Networks".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.claims.counterfactuals import Setting, counterfactual, sayable
from rasplens.compare.claims.posable import posable
from rasplens.compare.claims.trials.independent import PairsFrom
from rasplens.compare.pairing.inputs import balanced
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study
from rasplens.model import random_streams
from rasplens.tasks.task import NOT_ASKED


@dataclass(frozen=True, eq=False)
class InterchangePairs:
    """Pairs of inputs on which one variable is interchanged, and what the program says of them.

    Every other attempt takes the variable from the source at all positions, the others at a single one; those on
    which the program has no answer, or the same one, are left out.

    Attributes:
        variable: Its name.
        base: Inputs, by their place in the pairing.
        source: Others.
        intervened: The intervention mask: where the variable is taken from the source, `[pair, pos]`.
        expected: The program's answers then, as the task's codes.
        changes: Where they differ from those on the base itself.
    """

    variable: str
    base: Int[np.ndarray, " pair"]
    source: Int[np.ndarray, " pair"]
    intervened: Bool[np.ndarray, "pair pos"]
    expected: Int[np.ndarray, "pair answer"]
    changes: Bool[np.ndarray, "pair answer"]

    @property
    def stays(self) -> Bool[np.ndarray, "pair answer"]:
        """Where answers that are asked for are the same as on the base."""
        return ~self.changes & (self.expected != NOT_ASKED)

    @property
    def positions(self) -> list[int]:
        """The positions at which the variable is taken from some source."""
        return np.flatnonzero(self.intervened.any(axis=0)).tolist()

    def of(self, rows: Bool[np.ndarray, " pair"] | slice) -> "InterchangePairs":
        """Some of the pairs."""
        parts = self.base, self.source, self.intervened, self.expected, self.changes
        return InterchangePairs(self.variable, *(part[rows] for part in parts))


def interchange_pairs(
    pairing: Pairing,
    variable: str,
    positions: Sequence[int],
    seed: int,
    n: int | None = None,
    among: PairsFrom | None = None,
) -> InterchangePairs | None:
    """Random pairs of a pairing's inputs on which the program's answer depends on a variable.

    Args:
        pairing: Whose inputs; those on which the model answers as the program does.
        variable: Its name.
        positions: Where it may be taken from the source, see `Study.interchangeable_positions`.
        seed: Of the pairs.
        n: How many; by default as many as are configured.
        among: The inputs that pairs are of; by default all.

    Returns:
        The pairs; None if too few can be found.
    """
    config, rng = pairing.config, random_streams.rng(seed, "interchange pairs")
    codes, answers, posed = pairing.codes[variable], pairing.reference.answers(), posable(pairing)
    inputs, n = np.flatnonzero(pairing.agrees), n or config.interchange_pairs
    bases, sources = (inputs, inputs) if among is None else (inputs[which[inputs]] for which in among)
    written_at = pairing.compiled.variables[variable].written_at
    found: list[tuple[np.ndarray, ...]] = []
    tried = enough = 0
    while (
        min(len(inputs) - 1, len(bases), len(sources), len(positions)) > 0
        and tried < config.pairs_tried
        and enough < n
    ):
        base, source = bases[balanced(pairing.balance, bases, n, rng)], rng.choice(sources, n)
        intervened = np.zeros((n, codes.shape[1]), dtype=bool)
        intervened[::2, positions] = True
        intervened[np.arange(1, n, 2), rng.choice(positions, len(range(1, n, 2)))] = True
        setting, mixtures = Setting(variable, source, intervened), posed.mixtures(behind=written_at)
        expected, scores = counterfactual(pairing, base, setting, watching=mixtures.hooks)
        is_posed = posed.are_posed(expected, scores, mixtures.rows)
        expected = sayable(expected, pairing.learned.vocabulary.columns)
        changes = (expected != answers[base]) & (expected != NOT_ASKED)
        asked = is_posed & changes.any(axis=1)
        found.append(tuple(part[asked] for part in (base, source, intervened, expected, changes)))
        tried += n
        enough += int(asked.sum())
    if enough < config.least_pairs:
        return None
    return InterchangePairs(variable, *(np.concatenate(part)[:n] for part in zip(*found, strict=True)))


class DrawnPairs(NamedTuple):
    """The pairs that are drawn for one variable.

    Attributes:
        fitting: Those to choose a site on.
        scored: Others to score on.
    """

    fitting: InterchangePairs
    scored: InterchangePairs


def draw_pairs(study: Study, variables: Mapping[str, Sequence[int]], seed: int) -> list[DrawnPairs]:
    """Return, for every variable that can be tested, pairs to choose a site on and others to score on.

    Args:
        study: The models.
        variables: By name, the positions where each may be taken from elsewhere: `Study.variables`.
        seed: Of the pairs.
    """
    drawn = []
    for name, positions in variables.items():
        chosen, scored = (interchange_pairs(part, name, positions, seed) for part in (study.fitting, study.scored))
        if chosen is not None and scored is not None:
            drawn.append(DrawnPairs(chosen, scored))
    return drawn
