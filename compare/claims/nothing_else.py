"""The claim that nothing else decides: heads that attend like no compiled head do only what the program does."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rasplens.compare.claims.claim import Claim, Subject, judged_by_trials
from rasplens.compare.claims.edges.unmapped_heads import DECIDED, UnmappedHeads, unmapped
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.routes import ROUTES
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import Head, named
from rasplens.compare.term import Term


@dataclass(frozen=True)
class NothingElse(Subject):
    """Unmapped heads decide only by what they gather along the program's edges.

    Attributes:
        heads: Those of the learned model.
    """

    level = "routes"
    can_fail = False
    at_least = DECIDED
    tested = "With what these heads gather from another input"

    heads: tuple[Head, ...]

    def __str__(self) -> str:
        return f"nothing else decides ({named(self.heads)})"


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    found = evidence.of(NOTHING_ELSE)
    if found is not None:
        yield replace(judged(found, study.config.comparisons), again=partial(_again, study, found))


def judged(found: UnmappedHeads, comparisons: int) -> Claim:
    """The claim on unmapped heads.

    Heads may do the program's work in a way of their own: this leaves a claim open, and refutes none.
    """
    otherwise = 1 - found.trials.right.mean() if len(found.trials) else 0.0
    reason = (
        "no compiled head attends like these heads; taken from other inputs, they decide "
        f"{otherwise:.0%} of the answers otherwise than by values along the program's edges"
    )
    return judged_by_trials(
        NothingElse(tuple(found.heads)), [found.trials], found.control, False, reason, comparisons
    )


def _again(study: Study, found: UnmappedHeads, of: InputClass) -> list[Trials]:
    return [found.again(of.pairs_from(study.scored.answered))]


TERMS = (
    Term(
        "unmapped head",
        "A learned head that attends like no compiled head.",
        "claims.edges.unmapped_heads",
    ),
)

NOTHING_ELSE = ClaimKind(
    name="unmapped heads",
    subjects=(NothingElse,),
    test=lambda study, evidence, seed: None if evidence.of(ROUTES).why_none else unmapped(study.scored, seed),
    claims=_claims,
    terms=TERMS,
)
