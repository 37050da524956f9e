"""The claims on attention: where no intervention tells, heads attend where the program's selector selects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rasplens.compare.claims.claim import Claim, Subject, judged_by_trials, untestable
from rasplens.compare.claims.edges.attended import Attended, attended
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.routes import ROUTES, gathered
from rasplens.compare.claims.trials.independent import one_of_each
from rasplens.compare.claims.trials.judging import AT_LEAST, least_trials
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import Head, named


@dataclass(frozen=True)
class AttendsLike(Subject):
    """Heads attend like a head of the compiled model.

    Attributes:
        compiled: The compiled head.
        variable: The s-op that it computes.
        heads: Those of the learned model.
    """

    level = "routes"
    can_fail = False

    compiled: Head
    variable: str
    heads: tuple[Head, ...]

    def __str__(self) -> str:
        return f"{named(self.heads)} attends like the compiled head of {self.variable}"


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    """Attention to other positions may be without effect: it leaves a claim open, and refutes none."""
    routes = evidence.of(ROUTES)
    if routes.why_none:
        return
    told = gathered(routes, study.config.comparisons)
    for one in evidence.of(ATTENTION):
        if told.isdisjoint(one.gathers):
            yield _claim(one, study.scored, rng)


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
    test=lambda study, evidence, seed: list(attended(study, seed)),
    claims=_claims,
)
