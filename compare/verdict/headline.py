"""A comparison in a few lines: the verdict, its three levels, and the claims that decide."""

from dataclasses import dataclass
from math import isnan

from rasplens.compare.claims.claim import Claim, worst_first
from rasplens.compare.claims.edges.questions import Route
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, IN_PART, OPEN, UNTESTABLE, Status
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, UNKNOWN, LevelAnswer, Verdict

SAID = {
    IMPLEMENTS: "The learned model implements the program {}.",
    PARTLY: "The learned model implements the program {} in part.",
    NOT: "The learned model does not implement the program {}.",
    UNKNOWN: "Whether the learned model implements the program {} cannot be told.",
}

SAID_OF_A_PART = {
    IMPLEMENTS: "A part of the learned model implements the program {}.",
    PARTLY: "A part of the learned model implements the program {} in part.",
    NOT: "The learned model has no part that implements the program {}.",
    UNKNOWN: "Whether a part of the learned model implements the program {} cannot be told.",
}

MOST = 5
"""Sentences that say why."""

MOST_EXPLAINED = 2
"""Of claims that could not be tested the reason is given if they are so few."""


@dataclass(frozen=True)
class LevelLine:
    """One level of a verdict.

    Attributes:
        level: Its name.
        answer: The verdict on it.
        counts: How many of its claims hold, fail, are open or cannot be tested, in words.
    """

    level: str
    answer: LevelAnswer
    counts: str


@dataclass(frozen=True)
class Headline:
    """The outcome of a comparison in short.

    Attributes:
        sentence: The verdict.
        levels: Its three levels.
        reasons: At most `MOST` short sentences on what decides, the worst claims first.
    """

    sentence: str
    levels: tuple[LevelLine, ...]
    reasons: tuple[str, ...]


def headline(program: str, verdict: Verdict) -> Headline:
    """The verdict on a program, its levels and why."""
    lines = tuple(
        LevelLine(level, answer, _counts([claim for claim in verdict.all_claims if claim.level == level]))
        for level, answer in verdict.levels.items()
    )
    return Headline(_sentence(program, verdict), lines, tuple(_reasons(verdict)))


def refutation(verdict: Verdict) -> str:
    """The worst claim that fails and names a question which the model answers otherwise; empty without one."""
    failed = worst_first(verdict.of_status(FAILS))
    return next((f"{one.words!r} fails: {one.counterexample}." for one in failed if one.counterexample), "")


def _sentence(program: str, verdict: Verdict) -> str:
    """The verdict; of a program that is implemented but on one class of inputs, that class."""
    said = (SAID_OF_A_PART if verdict.is_of_part else SAID)[verdict.answer].format(repr(program))
    where = {claim.except_where for status in (FAILS, OPEN) for claim in verdict.of_status(status)}
    if verdict.answer != PARTLY or len(where) != 1 or "" in where:
        return said
    return f"{said.removesuffix('.')}: everywhere but where {where.pop()}."


def _counts(claims: list[Claim]) -> str:
    tested = [claim for claim in claims if claim.status != UNTESTABLE]
    if not tested:
        return "no claim that can be tested"
    statuses: tuple[Status, ...] = HOLDS, IN_PART, FAILS, OPEN
    held, in_part, failed, left_open = (sum(claim.status == status for claim in tested) for status in statuses)
    others = {
        "proved": sum(claim.is_proved for claim in tested),
        "in part": in_part,
        "fails" if failed == 1 else "fail": failed,
        "open": left_open,
        "not testable": len(claims) - len(tested),
    }
    return f"{held} of {len(tested)} claims hold" + "".join(f", {n} {name}" for name, n in others.items() if n)


def _reasons(verdict: Verdict) -> list[str]:
    """Return what decides: claims that fail or are open; and what could not be tested, in one sentence."""
    decisive = [claim for status in (FAILS, IN_PART, OPEN) for claim in worst_first(verdict.of_status(status))]
    sentences = [f"{_status(claim)}: {in_words(claim, verdict.is_of_part)}" for claim in decisive]
    shown = next((i for i, claim in enumerate(decisive) if claim.counterexample), None)
    if shown is not None:
        sentences[shown] += f" For example, {decisive[shown].counterexample}."
    held = verdict.of_status(HOLDS)
    if not decisive and held:
        least = min(held, key=lambda claim: claim.low)
        sentences.append(f"Holds least clearly: {in_words(least, verdict.is_of_part)}")
    untested = verdict.of_status(UNTESTABLE)
    with_why = [f"{claim.words} ({claim.reason})" for claim in untested]
    names = with_why if len(untested) <= MOST_EXPLAINED else [claim.words for claim in untested]
    last = [f"Not testable: {', '.join(names)}."] if untested else []
    room = MOST - len(last)
    if len(sentences) > room:
        left = len(sentences) - room + 1
        sentences = [*sentences[: room - 1], f"{left} more claims do not hold."]
    return [*sentences, *last]


def in_words(claim: Claim, is_of_part: bool) -> str:
    """What is claimed, what was done, what came out, and beside it what is needed and what the control reaches.

    Args:
        claim: The claim; without a score, it is said why there is none.
        is_of_part: Whether it is one of a part of a model, whose routes are judged by how far logits move.
    """
    if not claim.is_measured:
        return f"{claim.words}: {claim.reason}."
    is_effect = is_of_part and isinstance(claim.subject, Route)
    outcome = "of the logit difference moves" if is_effect else "of the answers come out"
    said = [
        f"{claim.words}{_where(claim)}. {claim.subject.tested}, {claim.score:.0%} {outcome} as the program says "
        f"({claim.low:.0%} to {claim.high:.0%})"
    ]
    if not isnan(needed := claim.subject.at_least):
        is_by_interval = claim.status == OPEN and claim.low < needed <= claim.score
        said.append(f"{needed:.0%} is needed{', by the lower end' if is_by_interval else ''}")
    if not isnan(claim.control):
        said.append(f"the control has {claim.control:.0%}")
    return f"{'; '.join(said)}."


def _status(claim: Claim) -> str:
    return {FAILS: "Fails", IN_PART: "In part"}.get(claim.status, "Open")


def _where(claim: Claim) -> str:
    """The class of inputs in which a claim fails, if it holds elsewhere."""
    return f" where {claim.except_where}; it holds elsewhere" if claim.except_where else ""
