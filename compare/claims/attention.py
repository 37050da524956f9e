"""The claims on attention: where no intervention tells, heads attend where the program's selector selects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rasplens.compare.claims.claim import FAILS, OPEN, Claim, Subject, judged_by_trials
from rasplens.compare.claims.edges.attended import Attended, attended
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.routes import ROUTES, gathered
from rasplens.compare.claims.trials import one_of_each
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import Head


@dataclass(frozen=True)
class AttendsLike(Subject):
    """Heads attend like a head of the compiled model.

    Attributes:
        compiled: The compiled head.
        variable: The s-op that it computes.
        heads: Those of the learned model.
    """

    level = "routes"

    compiled: Head
    variable: str
    heads: tuple[Head, ...]

    def __str__(self) -> str:
        heads = "+".join(f"L{layer}H{head}" for layer, head in self.heads)
        return f"{heads} attends like the compiled head of {self.variable}"


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    """Attention to other positions may be without effect: it leaves a claim open, and refutes none."""
    routes = evidence.of(ROUTES)
    if routes.why_none:
        return
    told = gathered(routes, study.config.comparisons)
    for one in evidence.of(ATTENTION):
        if told.isdisjoint(one.gathers):
            yield _claim(one, rng, study.config.comparisons)


def _claim(one: Attended, rng: np.random.Generator, comparisons: int) -> Claim:
    subject = AttendsLike(one.compiled, one.variable, one.heads)
    reason = "what it gathers there is the same everywhere, or only counted"
    trials = one_of_each(one.alike, one.rows, rng)
    found = judged_by_trials(subject, [trials], one.uniform, False, reason, comparisons)
    return replace(found, status=OPEN) if found.status == FAILS else found


ATTENTION = ClaimKind(
    name="attention where routes do not tell",
    subjects=(AttendsLike,),
    test=lambda study, evidence, seed: list(attended(study)),
    claims=_claims,
)
