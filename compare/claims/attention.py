"""The claims on attention: where no intervention tells, heads attend where the program's selector selects.

Of a part of a model, nothing else tells what such a selector does: without heads that attend like it, it is
left open.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rasplens.compare.claims.claim import Claim, Subject, judged_by_trials, left_open, untestable
from rasplens.compare.claims.edges.attended import Attended, attended, selecting
from rasplens.compare.claims.edges.compiled_heads import heads_along
from rasplens.compare.claims.edges.program_edges import Aggregates
from rasplens.compare.claims.effects.part import EFFECTS, told_by_effect
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.routes import ROUTES, gathered
from rasplens.compare.claims.trials.independent import one_of_each
from rasplens.compare.claims.trials.judging import AT_LEAST, UNTESTABLE, least_trials
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import Head, named

UNTOLD: Final = "no intervention tells what this selector does"


@dataclass(frozen=True)
class AttendsLike(Subject):
    """Heads attend like a head of the compiled model.

    Attributes:
        compiled: The compiled head.
        variable: The s-op that it computes.
        heads: Those of the learned model; none where none are looked for, or none is of use.
    """

    level = "routes"
    can_fail = False
    tested = "With what these heads gather from another input"

    compiled: Head
    variable: str
    heads: tuple[Head, ...]

    def __str__(self) -> str:
        return f"{named(self.heads) or 'a head'} attends like the compiled head of {self.variable}"


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    """Attention to other positions may be without effect: it leaves a claim open, and refutes none."""
    told = _told(study, evidence)
    if told is None:
        return
    if study.scope == "large part":
        along = heads_along(study.scored)
        for one in selecting(study.scored):
            if told.isdisjoint(along[one.head]):
                subject = AttendsLike(one.head, one.variable, ())
                yield left_open(subject, f"{UNTOLD}; not looked for in a model of this size")
        return
    for found in evidence.of(ATTENTION):
        if told.isdisjoint(found.gathers):
            claim = _claim(found, study.scored, rng)
            is_open = study.scored.as_part and claim.status == UNTESTABLE
            yield left_open(claim.subject, f"{UNTOLD}; {claim.reason}") if is_open else claim


def _told(study: Study, evidence: Evidence) -> set[Aggregates] | None:
    """The aggregates of which interventions tell whether they gather; None where no edges can be patched."""
    if study.scored.as_part:
        effects = evidence.of(EFFECTS)
        return None if effects.tests.why_none else told_by_effect(effects)
    routes = evidence.of(ROUTES)
    return None if routes.why_none else gathered(routes, study.config.comparisons)


def _claim(one: Attended, pairing: Pairing, rng: np.random.Generator) -> Claim:
    subject, comparisons = AttendsLike(one.compiled, one.variable, one.heads), pairing.config.comparisons
    if len(one.moves) < (needed := least_trials(AT_LEAST, comparisons)):
        why = f"what the compiled head gathers changes an answer in {len(one.moves)} trials of {needed}"
        return untestable(subject, why)
    alike = one_of_each(pairing.answered, np.arange(len(one.rows)), one.alike, one.rows, rng)
    share = one.moves.right.mean()
    reason = (
        f"attention is alike on {alike.right.mean():.0%} of its rows; taken from other inputs, these heads change "
        f"{share:.0%} of the answers that the compiled head changes"
    )
    found = judged_by_trials(subject, [alike, one.moves], one.uniform, False, reason, comparisons)
    inputs = pairing.answered
    return replace(found, trials=(one.moves,), again=lambda of: [one.again(of.pairs_from(inputs))])


ATTENTION = ClaimKind(
    name="attention where routes do not tell",
    subjects=(AttendsLike,),
    test=lambda study, evidence, seed: [] if study.scope == "large part" else list(attended(study, seed)),
    claims=_claims,
    scopes=("whole", "part", "large part"),
)
