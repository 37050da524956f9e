"""The claims on two variables together: each is taken from an input of its own, as in the program."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Bool

from rasplens.compare.claims.claim import Claim, SearchedAnew, Subject, judged_by_trials, untestable
from rasplens.compare.claims.interchange.joint import JointInterchange, joint_interchanges
from rasplens.compare.claims.interchange.joint_pairs import JointPairs
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.independent import Trials, one_of_each
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN
from rasplens.compare.claims.variables import VARIABLES
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compare.study import Study


@dataclass(frozen=True)
class TwoVariables(Subject):
    """Two variables, each taken from another input, change answers as in the program.

    Attributes:
        first: The name of the one.
        second: That of the other.
    """

    level = "variables"
    tested = "With each value from another input"

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

        trials = partial(_trials, one.pairs, inputs, rng)
        own = judged_by_trials(subject, trials(one.right), np.nan, True, where, comparisons)
        if own.status in (FAILS, OPEN) and one.ceiling is not None:
            ceiling = judged_by_trials(subject, trials(one.ceiling), np.nan, True, where, comparisons)
            if ceiling.status != HOLDS:
                yield untestable(subject, f"{where}: not even the compiled model does as the program says")
                continue
        yield replace(own, searched=partial(_searched, one, trials))


def _trials(
    pairs: JointPairs, inputs: AnsweredInputs, rng: np.random.Generator, right: Bool[np.ndarray, "pair answer"]
) -> list[Trials]:
    return [one_of_each(inputs, pairs.base, right, which, rng) for which in (pairs.by_first, pairs.by_second)]


def _searched(
    one: JointInterchange, trials: Callable[[Bool[np.ndarray, "pair answer"]], list[Trials]], of: InputClass
) -> SearchedAnew:
    """Other pairs than its own are not asked about: of these, what the compiled model says."""
    return SearchedAnew((), trials(one.compiled()))


JOINT = ClaimKind(
    name="variables together",
    subjects=(TwoVariables,),
    test=_test,
    claims=_claims,
    scopes=("whole", "part"),
)
