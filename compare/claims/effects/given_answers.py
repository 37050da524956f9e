"""The claim on a part's answers: the model gives them more often than by chance.

A large model answers in its own way on many inputs. That refutes no part: where it gives the program's answer, its
parts are asked how.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rasplens.compare.claims.claim import Claim, Subject
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.independent import Trials, one_of_each
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN, Share, Status, share
from rasplens.compare.study import Study
from rasplens.model import random_streams

ABOVE_CHANCE: Final = 0.1
"""How far above chance, on the way to 1, answers have to be the program's."""


@dataclass(frozen=True)
class GivesAnswers(Subject):
    """The model gives the program's answers more often than by chance."""

    level = "answers"
    at_least = float("nan")
    tested = "Where the program has an answer"

    def __str__(self) -> str:
        return "answers, where the program has one"


@dataclass(frozen=True, eq=False)
class Agreement:
    """How often a model gives a program's answers.

    Attributes:
        trials: Of each input that has any, whether the model gives one of them, drawn at random.
        chance: How often its answers are those on other inputs.
    """

    trials: Trials
    chance: float


def _agreement(study: Study, seed: int) -> Agreement:
    pairing, rng = study.scored, random_streams.rng(seed, "behaviour trials")
    said, given = (side.answers()[: pairing.n_drawn] for side in (pairing.reference, pairing.learned))
    asked = said >= 0
    trials = one_of_each(pairing.answered, np.arange(len(said)), given == said, asked, rng)
    by_chance = [
        np.mean(rng.permutation(given[asked]) == said[asked]) for _ in range(study.config.attention_shuffles)
    ]
    return Agreement(trials, float(np.mean(by_chance)))


def agrees(found: Agreement, comparisons: int) -> tuple[Share, Status]:
    """The share of the answers that the model gives, and whether it is more than by chance."""
    of_all = share(found.trials, comparisons)
    bar = found.chance + ABOVE_CHANCE * (1 - found.chance)
    return of_all, HOLDS if of_all.low >= bar else FAILS if of_all.high < bar else OPEN


def _answers(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    found = evidence.of(AGREEMENT)
    of_all, status = agrees(found, study.config.comparisons)
    reason = f"the model gives the program's answer; on shuffled inputs it does on {found.chance:.0%}"
    ends = of_all.score, of_all.low, of_all.high
    yield Claim(GivesAnswers(), status, *ends, found.chance, of_all.n, True, reason)


AGREEMENT = ClaimKind(
    name="answers of a part",
    subjects=(GivesAnswers,),
    test=lambda study, evidence, seed: _agreement(study, seed),
    claims=_answers,
    scopes=("part", "large part"),
)
