"""The claims on two variables together: each is taken from an input of its own, as in the program."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rasplens.compare.claims.claim import Claim, Subject, judged_by_trials, untestable
from rasplens.compare.claims.interchange.joint import JointInterchange, joint_interchanges
from rasplens.compare.claims.interchange.joint_pairs import JointPairs
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.independent import one_of_each
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN
from rasplens.compare.claims.variables import VARIABLES
from rasplens.compare.study import Study


@dataclass(frozen=True)
class TwoVariables(Subject):
    """Two variables, each taken from another input, change answers as in the program.

    Attributes:
        first: The name of the one.
        second: That of the other.
    """

    level = "variables"

    first: str
    second: str

    @property
    def names(self) -> tuple[str, ...]:
        """Those of both."""
        return self.first, self.second

    def __str__(self) -> str:
        return f"variables {self.first} and {self.second} together"


def _test(study: Study, evidence: Evidence, seed: int) -> list[JointInterchange]:
    alone = evidence.of(VARIABLES)
    return list(joint_interchanges(study, alone.drawn, alone.interchanged, alone.reference, seed))


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    comparisons, inputs = study.config.comparisons, study.scored.answered
    for one in evidence.of(JOINT):
        subject = TwoVariables(*one.variables)
        where = f"interchanged at {' and '.join(one.points)}"

        def judge(
            right: np.ndarray, subject: Subject = subject, where: str = where, pairs: JointPairs = one.pairs
        ) -> Claim:
            trials = [
                one_of_each(inputs, pairs.base, right, which, rng) for which in (pairs.by_first, pairs.by_second)
            ]
            return judged_by_trials(subject, trials, float("nan"), True, where, comparisons)

        own = judge(one.right)
        if own.status in (FAILS, OPEN) and one.ceiling is not None and judge(one.ceiling).status != HOLDS:
            yield untestable(subject, f"{where}: not even the compiled model does as the program says")
        else:
            yield own


JOINT = ClaimKind(name="variables together", subjects=(TwoVariables,), test=_test, claims=_claims)
