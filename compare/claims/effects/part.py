"""The claims on a part of a model: what is changed inside moves its logits as the program predicts.

It is asked only where it gives the program's answer.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import pandas as pd

from rasplens.compare.claims.claim import Claim, left_open, untestable
from rasplens.compare.claims.edges.program_edges import Aggregates
from rasplens.compare.claims.edges.questions import GatheredEdges, OtherEdges, Route
from rasplens.compare.claims.effects.effect_test import EffectTest
from rasplens.compare.claims.effects.given_answers import AGREEMENT, agrees
from rasplens.compare.claims.effects.part_tests import PartTests, part_tests
from rasplens.compare.claims.effects.subjects import CarriedBy, Fed, Sufficient
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    FAILS,
    HOLDS,
    IN_PART,
    OPEN,
    Share,
    Status,
    least_trials,
)
from rasplens.compare.claims.variables import OneVariable
from rasplens.compare.config import CompareConfig
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import named
from rasplens.compare.term import Term
from rasplens.compile.rasp import Aggregate, IndicesType, SOp, TokensType
from rasplens.compile.rasp.interpreter import expressions
from rasplens.model import random_streams

SOME_OF_IT: Final = 0.1
"""A claim holds in part if at least this share does, by the lower end, and more than in its control."""

HEADS = ("variable", "head", "effect", "attention", "uniform")
CHANGED_AND_KEPT = "changed", "kept"
"""The parts of a claim: answers that should change, and answers that should not."""

COLUMNS = ("claim", "part", "share", "low", "high", "control", "n")


@dataclass(frozen=True)
class AllEffects(Route):
    """All claims on effects, where none can be tested."""

    def __str__(self) -> str:
        return "effects"


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
    if agrees(evidence.of(AGREEMENT), study.config.comparisons)[1] == FAILS:
        why = "the model hardly gives the program's answers more often than by chance"
        return JudgedTests(PartTests(why_none=why), ())
    tests, rng = part_tests(study, seed, evidence.step), random_streams.rng(seed, "effect intervals")
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
        told = told_by_edges(study.compiled.program, set(chain(*told_by_effect(found))))
        why = "of a part of a large model, only edges are patched"
        for name in study.variables:
            found_by_edges = untestable(OneVariable(name), f"{why}; these tell of it")
            yield found_by_edges if name in told else left_open(OneVariable(name), why)
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
        why = f"{n} pairs of inputs could be asked, where {needed} are needed" if test.parts else test.reason
        return left_open(test.subject, why) if test.is_open else untestable(test.subject, why)
    least = min(shares.values(), key=lambda part: part.score)
    low, high = min(part.low for part in shares.values()), min(part.high for part in shares.values())
    status = _status(judged, test.subject.at_least)
    if status == HOLDS and "changed" not in shares:
        # What has no effect there holds of many models.
        return untestable(test.subject, "no answer that changes could be asked about")
    if status != HOLDS and not test.subject.can_fail:
        return untestable(test.subject, f"left open: {least.score:.0%} is {test.reason}")
    ends = least.score, low, high
    trials = test.trials if status == HOLDS else ()  # one that holds may yet fail in a class
    found = Claim(test.subject, status, *ends, judged.control, least.n, test.substantial, test.reason)
    return replace(found, trials=tuple(part for part in trials if len(part)), again=test.again)


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


def told_by_edges(program: SOp, told: Collection[str]) -> set[str]:
    """The aggregates whose values nothing but edges decides: of what is read, or of other such aggregates.

    Of what is computed from several, edges only tell what it is computed from. One whose name is also another's is
    not told.
    """
    names, found = Counter(expr.name for expr in expressions(program)), dict[int, str]()
    for expr in expressions(program):
        if not isinstance(expr, Aggregate) or expr.name not in told or names[expr.name] > 1:
            continue
        if isinstance(expr.sop, TokensType | IndicesType) or id(expr.sop) in found:
            found[id(expr)] = expr.name
    return set(found.values())


def told_by_effect(found: JudgedTests) -> set[Aggregates]:
    """The aggregates of which effects tell whether values are gathered along their edges."""
    with_changes = (one.test.subject for one in found.judged if "changed" in one.shares)
    return {subject.aggregates for subject in with_changes if isinstance(subject, GatheredEdges)}


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
