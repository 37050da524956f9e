"""The claims on a part of a model: its answers where it gives them, and the effects of interventions on them.

A large model does more than any program says, and answers in its own way on many inputs. So it is asked only where
it gives the program's answer. What is then changed inside should move its logits as the program predicts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from rasplens.compare.claims.claim import Claim, Subject, untestable
from rasplens.compare.claims.edges.questions import OtherEdges, Route
from rasplens.compare.claims.effects.part_tests import EffectTest, PartTests, part_tests
from rasplens.compare.claims.effects.subjects import CarriedBy, Fed, Sufficient
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.independent import Trials, one_of_each
from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    FAILS,
    HOLDS,
    IN_PART,
    OPEN,
    Share,
    Status,
    least_trials,
    share,
)
from rasplens.compare.claims.variables import OneVariable
from rasplens.compare.config import CompareConfig
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import named
from rasplens.compare.term import Term
from rasplens.model import random_streams

MOST_OF_IT: Final = AT_LEAST
"""A claim holds if at least this share of the difference moves as the program predicts, by the lower end."""

HALF_OF_IT: Final = 0.5
"""The same of a claim on which heads are at work: they are so few that some are left out."""

SOME_OF_IT: Final = 0.1
"""A claim holds in part if at least this share does, by the lower end, and more than in its control."""

HEADS = ("variable", "head", "effect", "attention", "uniform")
CHANGED_AND_KEPT = "changed", "kept"
"""The parts of a claim: answers that should change, and answers that should not."""

COLUMNS = ("claim", "part", "share", "low", "high", "control", "n")


@dataclass(frozen=True)
class GivesAnswers(Subject):
    """The model gives the program's answers more often than by chance."""

    level = "answers"

    def __str__(self) -> str:
        return "answers, where the program has one"


@dataclass(frozen=True)
class AllEffects(Route):
    """All claims on effects, where none can be tested."""

    def __str__(self) -> str:
        return "effects"


@dataclass(frozen=True, eq=False)
class Agreement:
    """How often a model gives a program's answers.

    Attributes:
        trials: Of each input that has any, whether the model gives one of them, drawn at random.
        chance: How often its answers are those on other inputs.
        n: How many answers there are.
    """

    trials: Trials
    chance: float
    n: int


def _agreement(study: Study, seed: int) -> Agreement:
    pairing, rng = study.scored, random_streams.rng(seed, "behaviour trials")
    said, given = (side.answers()[: pairing.n_drawn] for side in (pairing.reference, pairing.learned))
    asked = said >= 0
    trials = one_of_each(pairing.answered, np.arange(len(said)), given == said, asked, rng)
    by_chance = [
        np.mean(rng.permutation(given[asked]) == said[asked]) for _ in range(study.config.attention_shuffles)
    ]
    return Agreement(trials, float(np.mean(by_chance)), int(asked.sum()))


def _agrees(found: Agreement, comparisons: int) -> tuple[Share, Status]:
    """The share of the answers that the model gives, and whether it is more than by chance."""
    of_all = share(found.trials, comparisons)
    bar = found.chance + SOME_OF_IT * (1 - found.chance)
    return of_all, HOLDS if of_all.low >= bar else FAILS if of_all.high < bar else OPEN


def _answers(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    found = evidence.of(AGREEMENT)
    of_all, status = _agrees(found, study.config.comparisons)
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


@dataclass(frozen=True, eq=False)
class Judged:
    """A test of a part, with intervals.

    Attributes:
        test: The test.
        shares: By part, "changed" or "kept", its share; of fewer trials than a claim needs none.
        above: By how much more of what should change does than of any other answer; None where that is not known.
    """

    test: EffectTest
    shares: Mapping[str, Share]
    above: Share | None

    @property
    def control(self) -> float:
        """The larger control; NaN if there is none."""
        control = self.test.control
        return float(np.fmax(self.test.floor, np.nan if control is None else control.share))


@dataclass(frozen=True, eq=False)
class JudgedTests:
    """The tests of a part, judged."""

    tests: PartTests
    judged: tuple[Judged, ...]


def _test(study: Study, evidence: Evidence, seed: int) -> JudgedTests:
    if _agrees(evidence.of(AGREEMENT), study.config.comparisons)[1] == FAILS:
        why = "the model hardly gives the program's answers more often than by chance"
        return JudgedTests(PartTests(why_none=why), ())
    tests, rng = part_tests(study, seed), random_streams.rng(seed, "effect intervals")
    return JudgedTests(tests, tuple(_judged(one, study.config, rng) for one in tests.found))


def _judged(test: EffectTest, config: CompareConfig, rng: np.random.Generator) -> Judged:
    needed = least_trials(AT_LEAST, config.comparisons)
    named = zip(CHANGED_AND_KEPT, test.parts, strict=False)
    enough = {name: one for name, one in named if len(one) >= needed and one.expected.sum() > 0}
    how = config.bootstrap_draws, rng, config.comparisons
    shares = {name: one.interval(*how) for name, one in enough.items()}
    known = test.control is not None and "changed" in enough and test.control.expected.sum() > 0
    above = test.parts[0].above(test.control, *how) if known and test.control is not None else None
    return Judged(test, shares, above)


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    found = evidence.of(EFFECTS)
    if study.is_large:
        for name in study.variables:
            yield untestable(OneVariable(name), "left open: of a part of a large model, only edges are patched")
    yield untestable(OtherEdges(), "left open: the program is compared as a part of the model")
    if found.tests.why_none:
        yield untestable(AllEffects(), found.tests.why_none)
    needed = least_trials(AT_LEAST, study.config.comparisons)
    for one in found.judged:
        yield claim_of(one, needed)


def claim_of(judged: Judged, needed: int) -> Claim:
    """The claim of a test.

    It holds if most of each difference moves as predicted, and in part if some does, both times more than in its
    controls. It fails if hardly more does than in these; or if something moves that should not.
    """
    test, shares = judged.test, judged.shares
    if not shares:
        n = len(test.parts[0]) if test.parts else 0
        why = f"{n} pairs of inputs could be asked, where {needed} are needed"
        return untestable(test.subject, why if test.parts else test.reason)
    least = min(shares.values(), key=lambda part: part.score)
    low, high = min(part.low for part in shares.values()), min(part.high for part in shares.values())
    status = _status(judged, MOST_OF_IT if test.substantial else HALF_OF_IT)
    if status == HOLDS and "changed" not in shares:
        # What has no effect there holds of many models.
        return untestable(test.subject, "no answer that changes could be asked about")
    if status != HOLDS and not test.subject.can_fail:
        return untestable(test.subject, f"left open: {least.score:.0%} is {test.reason}")
    ends = least.score, low, high
    return Claim(test.subject, status, *ends, judged.control, least.n, test.substantial, test.reason)


def _status(judged: Judged, at_least: float) -> Status:
    """Whether the shares of a claim are as claimed."""
    kept = judged.shares.get("kept")
    if kept is not None and kept.high < at_least:
        return FAILS
    changed, floor = judged.shares.get("changed", kept), float(np.fmax(judged.test.floor, 0))
    assert changed is not None
    some, above = max(floor, SOME_OF_IT), judged.above
    if changed.high < some or (above is not None and above.high < SOME_OF_IT):
        return FAILS
    if changed.low <= floor or (above is not None and above.low <= 0):
        return OPEN
    if min(part.low for part in judged.shares.values()) >= at_least:
        return HOLDS
    return IN_PART if changed.low > some and changed.high < at_least else OPEN


def _tables(found: JudgedTests) -> dict[str, pd.DataFrame]:
    effects = [
        (str(one.test.subject), name, part.score, part.low, part.high, one.control, part.n)
        for one in found.judged
        for name, part in one.shares.items()
    ]
    heads = [
        (" and ".join(names), named([head]), effect, attention, group.uniform)
        for names, one in found.tests.gathering.items()
        if (group := one.group) is not None
        for head, effect, attention in zip(group.heads, group.alone, group.attention, strict=True)
    ]
    return {
        "effects": pd.DataFrame(effects, columns=list(COLUMNS)),
        "part_heads": pd.DataFrame(heads, columns=list(HEADS)),
    }


TERMS = (
    Term(
        "effect",
        "The share of a model's own logit difference between two answers that an intervention moves as predicted.",
        "claims.effects.effect",
        ("effects", "share", "effect"),
    ),
    Term(
        "group of heads",
        "The fewest heads, of those tried, that have most of the effect of all heads along a selector's edges.",
        "claims.effects.groups",
        ("part_heads", "uniform"),
    ),
)

EFFECTS = ClaimKind(
    name="effects",
    subjects=(CarriedBy, Fed, Sufficient, AllEffects),
    test=_test,
    claims=_claims,
    tables=_tables,
    terms=TERMS,
    scopes=("part", "large part"),
)
"""The claims on effects; those on routes have the subjects of `ROUTES`, and are judged by effect."""
