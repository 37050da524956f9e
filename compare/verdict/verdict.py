"""From claims to a verdict, by conjunction: a model implements a program if everything that can be tested holds.

No claim pays for another. Three levels have an answer each: the same answers, the same variables (the algorithm),
the same routes (the circuit).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import pandas as pd

from rasplens.compare.claims.catalogue import SUBJECTS, examine
from rasplens.compare.claims.claim import Claim, Level, claims_table, worst_first
from rasplens.compare.claims.effects.given_answers import GivesAnswers
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, IN_PART, OPEN, UNTESTABLE
from rasplens.compare.claims.variables import OneVariable
from rasplens.compare.study import Study
from rasplens.errors import RaspLensError

Answer = Literal["implements", "partly", "does not", "cannot tell"]
LevelAnswer = Literal["implements", "partly", "does not", "cannot tell", "not testable"]

IMPLEMENTS: Final = "implements"
PARTLY: Final = "partly"
NOT: Final = "does not"
UNKNOWN: Final = "cannot tell"

LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class Verdict:
    """The answer of a comparison, and the claims that it rests on.

    Attributes:
        answer: "implements", "partly", "does not" or "cannot tell".
        levels: The same for the "answers", the "variables" and the "routes" alone; "not testable" where a program
            claims nothing there that could be tested.
        all_claims: Every claim of the program.
        reasons: Why, in plain sentences.
    """

    answer: Answer
    levels: Mapping[Level, LevelAnswer]
    all_claims: tuple[Claim, ...]
    reasons: tuple[str, ...]

    @property
    def claims(self) -> pd.DataFrame:
        """One row per claim; its columns are `COLUMNS` of `claims.claim`."""
        return claims_table(self.all_claims)

    @property
    def variables(self) -> dict[str, str]:
        """The status of each variable between input and output, by its name."""
        found = [(one.subject, one.status) for one in self.all_claims]
        return {subject.name: status for subject, status in found if isinstance(subject, OneVariable)}

    @property
    def is_of_part(self) -> bool:
        """Whether the program was compared with a part of the model."""
        return _is_of_part(self.all_claims)

    def of_status(self, status: str) -> list[Claim]:
        """The claims of one status."""
        return [claim for claim in self.all_claims if claim.status == status]

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, None for NaN."""
        return {
            "answer": self.answer,
            "levels": dict(self.levels),
            "claims": [claim.to_dict() for claim in self.all_claims],
            "reasons": list(self.reasons),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Verdict":
        """The verdict that `to_dict` described.

        Raises:
            RaspLensError: If it does not follow from its claims.
        """
        again = verdict([Claim.from_dict(claim, SUBJECTS) for claim in values["claims"]])
        if any(again.to_dict()[name] != values[name] for name in ("answer", "levels", "reasons")):
            raise RaspLensError("its verdict does not follow from its claims")
        return again

    def __str__(self) -> str:
        return f"{self.answer} ({', '.join(f'{level}: {answer}' for level, answer in self.levels.items())})"


def judge(study: Study, seed: int) -> Verdict:
    """The verdict on two models, by the tests of the program's claims and nothing else.

    Args:
        study: The models on the same inputs.
        seed: Of pairs and controls.
    """
    claims, _ = examine(study, seed)
    return verdict(claims)


def verdict(claims: Sequence[Claim]) -> Verdict:
    """Return the verdict on claims, by conjunction."""
    is_of_part = _is_of_part(claims)
    levels = {
        level: level_answer([claim for claim in claims if claim.level == level], is_of_part) for level in LEVELS
    }
    answer = _together(levels)
    return Verdict(answer, levels, tuple(claims), tuple(_reasons(answer, levels, claims)))


def level_answer(claims: Sequence[Claim], is_of_part: bool = False) -> LevelAnswer:
    """The answer of the claims of one level.

    Of a part of a model, a claim may hold in part. One that fails refutes all of the program, unless it holds
    outside of a class of inputs.
    """
    found = [claim for claim in claims if claim.status != UNTESTABLE]
    if not found:
        return "not testable"
    if all(claim.status == HOLDS for claim in found):
        return IMPLEMENTS
    statuses = {claim.status for claim in found}
    if FAILS not in statuses:
        return PARTLY if IN_PART in statuses else UNKNOWN
    if is_of_part:
        return PARTLY if all(claim.except_where for claim in found if claim.status == FAILS) else NOT
    # That something has no effect holds of many programs: only what changes an answer counts for a part of one.
    if found[0].level == "answers":
        asked = [claim for claim in found if claim.substantial]  # not whether each single answer is given
        above = [
            claim
            for claim in asked
            if claim.except_where or claim.low > claim.control + PART * (1 - claim.control)
        ]
        return PARTLY if len(above) == len(asked) else NOT
    in_part = (claim for claim in found if claim.status == HOLDS or claim.except_where)
    return PARTLY if any(claim.substantial for claim in in_part) else NOT


def _is_of_part(claims: Sequence[Claim]) -> bool:
    return any(isinstance(claim.subject, GivesAnswers) for claim in claims)


PART: Final = 0.5
"""How far answers must come, from an untrained model's (0) to the program's (1), to be partly the same."""


def _together(levels: Mapping[Level, LevelAnswer]) -> Answer:
    answers, mechanism = levels["answers"], [levels[level] for level in LEVELS[1:]]
    tested = [answer for answer in mechanism if answer != "not testable"]
    if answers in (NOT, "not testable"):
        return NOT if answers == NOT else UNKNOWN
    if not tested:  # on how the model works there is nothing to hold against answers that differ
        return NOT if answers == PARTLY else UNKNOWN
    if all(answer == IMPLEMENTS for answer in tested):
        return answers if answers in (IMPLEMENTS, PARTLY) else UNKNOWN
    if NOT in tested:
        return PARTLY if any(answer in (IMPLEMENTS, PARTLY) for answer in tested) else NOT
    return PARTLY if PARTLY in (answers, *tested) else UNKNOWN


def _reasons(answer: Answer, levels: Mapping[Level, LevelAnswer], claims: Sequence[Claim]) -> list[str]:
    """The claims that decide, the worst first; then what could not be tested."""
    sentences = []
    if levels["variables"] == IMPLEMENTS and levels["routes"] in (NOT, PARTLY):
        sentences.append("The same variables by other routes.")
    if levels["answers"] == PARTLY and answer == NOT and set(levels.values()) == {PARTLY, UNTESTABLE}:
        sentences.append("The answers agree in part, and nothing tells how the model finds them.")
    elsewhere = [claim for claim in claims if claim.except_where]
    if elsewhere and answer == PARTLY:
        widest = max(elsewhere, key=lambda claim: claim.n)
        sentences.append(f"Claims that hold elsewhere fail where {widest.except_where}.")
    for status in (FAILS, IN_PART, OPEN):
        worst = worst_first(claim for claim in claims if claim.status == status)
        sentences += [
            f"{claim.level}: {claim.words}: {status} "
            f"({'; '.join(filter(None, (_numbers(claim), claim.reason, claim.counterexample)))})."
            for claim in worst
        ]
    if answer == IMPLEMENTS:
        n = sum(claim.status == HOLDS for claim in claims)
        proved = sum(claim.is_proved for claim in claims)
        sentences.append(f"All {n} claims that can be tested hold{f', {proved} of them proved' * bool(proved)}.")
    sentences += [
        f"{claim.level}: {claim.words}: not testable ({claim.reason})."
        for claim in claims
        if claim.status == UNTESTABLE
    ]
    if not sentences:
        sentences.append("The program claims nothing of variables or routes that these inputs could test.")
    return sentences


def _numbers(claim: Claim) -> str:
    return f"{claim.score:.2f}, {claim.low:.2f} to {claim.high:.2f}" if claim.is_measured else ""
