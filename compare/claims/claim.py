"""Claims of a program on a model, each with its status: holds, fails, cannot tell, or not testable.

A claim is tested by independent trials: pairs of inputs, or inputs, of each of which one answer counts. Its score
is the share of trials that came out as the program says, with a 95 % interval.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Final, Literal, NamedTuple

import pandas as pd

from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    AT_MOST,
    FAILS,
    HOLDS,
    OPEN,
    UNTESTABLE,
    Status,
    judged,
    least_trials,
    share,
)

Level = Literal["answers", "variables", "routes"]
NUMBERS: Final = "score", "low", "high", "control"

COLUMNS: Final = (
    "claim", "kind", "status", *NUMBERS, "n", "substantial", "reason", "except_where", "proof", "counterexample",
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """The subject of a claim. All that is said of a claim is joined on it. `str` gives the claim in words.

    Attributes:
        level: The level that such claims belong to: the same answers, variables, or routes.
        can_fail: Whether trials can refute such claims; else they leave them open.
        at_least: The score from which on such claims hold; NaN where it depends on the model.
        at_most: The score below which they fail, if they can; NaN where it is not an interval alone that decides.
        tested: What is done in a trial: the beginning of a sentence, which its outcome goes on with.
    """

    level: ClassVar[Level]
    can_fail: ClassVar[bool] = True
    at_least: ClassVar[float] = AT_LEAST
    at_most: ClassVar[float] = AT_MOST
    tested: ClassVar[str] = "In the trials"

    def to_dict(self) -> dict[str, Any]:
        """Its type and its fields, as JSON values."""
        return {"type": type(self).__name__, **asdict(self)}

    @staticmethod
    def from_dict(values: Mapping[str, Any], types: Sequence[type["Subject"]]) -> "Subject":
        """The subject that `to_dict` described, of one of some types."""
        kind = {one.__name__: one for one in types}[values["type"]]
        return kind(**{name: _as_tuple(value) for name, value in values.items() if name != "type"})


def _as_tuple(value: Any) -> Any:
    """A value of JSON, with tuples for lists."""
    return tuple(map(_as_tuple, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Enumerated:
    """All questions of a kind that a claim makes, asked.

    Attributes:
        every: The inputs or pairs that they are of, such as "all 16,384 pairs".
        asked: How many questions there are.
        wrong: How many the model answers otherwise than the program.
        example: One of these, in words; empty where there is none.
        is_all: Whether there is no other question.
        some: Some of the questions as trials, drawn at random: classes are looked for in them.
    """

    every: str
    asked: int
    wrong: int
    example: str
    is_all: bool = True
    some: Trials | None = None


class SearchedAnew(NamedTuple):
    """Trials on a class of inputs of what a search finds.

    Attributes:
        learned: After another search, in the class; none where there is none.
        compiled: In the compiled model, where the same search is sure to have something to find.
    """

    learned: Sequence[Trials]
    compiled: Sequence[Trials]


@dataclass(frozen=True)
class Claim:
    """One claim of a program, and what became of it.

    Attributes:
        subject: What it is about.
        status: Whether it holds.
        score: The share of trials that came out as claimed: the least of its parts. NaN if it was not tested.
        low: The lower end of the 95 % interval.
        high: The upper end.
        control: What a control reaches; NaN if there is none.
        n: The trials of that part.
        substantial: Whether it says that something changes an answer, not only that nothing else does.
        reason: What the score is, or why there is none.
        except_where: The class of inputs in which it fails, if it holds everywhere else; empty else.
        proof: The inputs or pairs, such as "all 16,384 pairs", if the claim is true of all there are; empty else.
            If these were asked row by row, it says so, and the interval is that of trials on several rows.
        counterexample: A question about answers or edges that the model answers otherwise than the program; where
            all were asked, how many there are.
        trials: Of each part, while claims are judged class by class; none afterwards.
        others: More trials, in which classes are looked for.
        again: From a class of inputs, other trials of each part on it; None where none can be asked.
        searched: From a class of inputs, what a search finds there; None where the claim rests on no search.
    """

    subject: Subject
    status: Status
    score: float
    low: float
    high: float
    control: float
    n: int
    substantial: bool
    reason: str
    except_where: str = ""
    proof: str = ""
    counterexample: str = ""
    trials: tuple[Trials, ...] = field(default=(), compare=False, repr=False)
    others: tuple[Trials, ...] = field(default=(), compare=False, repr=False)
    again: Callable[[InputClass], Sequence[Trials]] | None = field(default=None, compare=False, repr=False)
    searched: Callable[[InputClass], SearchedAnew] | None = field(default=None, compare=False, repr=False)

    @property
    def level(self) -> Level:
        """The level it belongs to: the same answers, variables, or routes."""
        return self.subject.level

    @property
    def words(self) -> str:
        """The claim in words."""
        return str(self.subject)

    @property
    def is_measured(self) -> bool:
        """Whether it has a score."""
        return self.n > 0 and self.status != UNTESTABLE

    @property
    def is_proved(self) -> bool:
        """Whether nothing is left to chance: where rows were asked about one by one, several at once still are."""
        return bool(self.proof) and self.low == self.high

    @property
    def status_words(self) -> str:
        """The status, and where it is proved, on what."""
        return f"{self.status} ({self.proof})" if self.proof else self.status

    def on_all(self, found: Enumerated) -> "Claim":
        """The claim, after all questions there are were asked: proved, or with a counterexample.

        Where a trial came out otherwise than claimed, there are questions that were not among them: no proof.
        Where these are not all, trials on the others decide, and a claim that they leave open stays open.
        """
        if self.status == UNTESTABLE or (self.counterexample and not found.wrong):
            return self
        if not found.wrong and not found.is_all:
            return replace(self, proof=found.every) if self.status == HOLDS else self
        if not found.wrong:
            return replace(self, status=HOLDS, score=1.0, low=1.0, high=1.0, n=found.asked, proof=found.every)
        counted = f"{found.wrong:,} of {found.asked:,} questions on {found.every} are answered otherwise"
        others = () if found.some is None else (found.some,)
        return replace(self, counterexample=f"{counted}: {found.example}", others=others)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, None for NaN, and what is claimed, at which level, in words."""
        said = {"subject": self.subject.to_dict(), "claim": self.words, "kind": self.level}
        others = {name: getattr(self, name) for name in COLUMNS[2:]}
        return said | {name: None if value != value else value for name, value in others.items()}

    @staticmethod
    def from_dict(values: Mapping[str, Any], types: Sequence[type[Subject]]) -> "Claim":
        """The claim that `to_dict` described, about a subject of one of some types."""
        others: dict[str, Any] = {
            name: float("nan") if name in NUMBERS and values[name] is None else values[name]
            for name in COLUMNS[2:]
        }
        return Claim(Subject.from_dict(values["subject"], types), **others)


def judged_by_trials(
    subject: Subject,
    trials: Sequence[Trials],
    control: float,
    substantial: bool,
    reason: str,
    comparisons: int,
) -> Claim:
    """A claim from the trials of its parts; those of fewer than `least_trials` do not count.

    Args:
        subject: What the claim is about.
        trials: Of each part.
        control: What a control reaches.
        substantial: Whether something has to change.
        reason: What was done.
        comparisons: How many comparisons are made at once.
    """
    needed = least_trials(AT_LEAST, comparisons)
    counted = [part for part in trials if len(part) >= needed]
    if not counted:
        most = max((len(part) for part in trials), default=0)
        return untestable(subject, f"{most} pairs of inputs could be asked, where {needed} are needed")
    parts = [share(part, comparisons) for part in counted]
    least = min(parts, key=lambda part: part.score)
    low, high = (min(getattr(part, end) for part in parts) for end in ("low", "high"))
    ends, status = (least.score, low, high), judged(parts, subject.at_least)
    if status == FAILS and not subject.can_fail:
        status = OPEN
    return Claim(subject, status, *ends, control, least.n, substantial, reason, trials=tuple(counted))


def untestable(subject: Subject, why: str) -> Claim:
    """A claim that cannot be tested on these inputs, or in this model."""
    nan = float("nan")
    return Claim(subject, UNTESTABLE, nan, nan, nan, nan, 0, False, why)


def left_open(subject: Subject, why: str) -> Claim:
    """A claim that no test could decide; it keeps the verdict open."""
    return replace(untestable(subject, why), status=OPEN)


def worst_first(claims: Iterable[Claim]) -> list[Claim]:
    """Claims by their score; those without one last."""
    return sorted(claims, key=lambda claim: claim.score if claim.is_measured else float("inf"))


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """One row per claim: columns `COLUMNS`, of which `claim` is what is claimed and `kind` its level."""
    rows = [(one.words, one.level, *(getattr(one, name) for name in COLUMNS[2:])) for one in claims]
    return pd.DataFrame(rows, columns=list(COLUMNS))
