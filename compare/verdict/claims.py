"""What a program claims of a model, each claim with its status: holds, fails, cannot tell, or not testable.

A claim is tested by independent trials: pairs of inputs, or inputs, of each of which one answer counts. Its score
is the share of trials that came out as the program says, with the 95 % interval of a proportion (Wilson 1927,
"Probable inference, the law of succession, and statistical inference").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool
from scipy.stats import binomtest, norm

Level = Literal["answers", "variables", "routes"]
Status = Literal["holds", "fails", "cannot tell", "not testable"]

HOLDS: Final = "holds"
FAILS: Final = "fails"
OPEN: Final = "cannot tell"
UNTESTABLE: Final = "not testable"

AT_LEAST: Final = 0.75
"""A claim holds if the lower end of its interval is at least this, which true programs reach."""

AT_MOST: Final = 0.65
"""A claim fails if the upper end of its interval is below this: hardly a true program's claims do."""

CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Claim:
    """One claim of a program, and what became of it.

    Attributes:
        claim: What is claimed, in words.
        kind: The level it belongs to: the same answers, variables, or routes.
        status: Whether it holds.
        score: The share of trials that came out as claimed: the least of its parts. NaN if it was not tested.
        low: The lower end of the 95 % interval.
        high: The upper end.
        control: What a control reaches; NaN if there is none.
        n: The trials of that part.
        substantial: Whether it says that something changes an answer, not only that nothing else does.
        reason: What the score is, or why there is none.
    """

    claim: str
    kind: Level
    status: Status
    score: float
    low: float
    high: float
    control: float
    n: int
    substantial: bool
    reason: str


@dataclass(frozen=True)
class Share:
    """A share of trials with its interval."""

    score: float
    low: float
    high: float
    n: int


def share(trials: Bool[np.ndarray, " trial"], comparisons: int = 1) -> Share:
    """The share of trials that succeeded, with the interval that covers 95 % over that many comparisons together.

    Args:
        trials: Which succeeded; at least one.
        comparisons: How many comparisons are made at once (Bonferroni).
    """
    level = 1 - (1 - CONFIDENCE) / comparisons
    found = binomtest(int(trials.sum()), len(trials)).proportion_ci(level, method="wilson")
    return Share(float(trials.mean()), float(found.low), float(found.high), len(trials))


def least_trials(at_least: float, comparisons: int = 1) -> int:
    """How many trials a claim needs: with fewer its interval would reach lower even if all of them succeeded."""
    z = norm.ppf(1 - (1 - CONFIDENCE) / comparisons / 2)
    return math.ceil(at_least / (1 - at_least) * z**2)


def judged(parts: Sequence[Share]) -> Status:
    """The status of a claim whose parts all have to hold."""
    if all(part.low >= AT_LEAST for part in parts):
        return HOLDS
    return FAILS if any(part.high < AT_MOST for part in parts) else OPEN


def judged_by_trials(
    claim: str,
    kind: Level,
    trials: Sequence[np.ndarray],
    control: float,
    substantial: bool,
    reason: str,
    comparisons: int,
) -> Claim:
    """A claim from the trials of its parts; those of fewer than `least_trials` do not count.

    Args:
        claim: What is claimed.
        kind: Its level.
        trials: Of each part, which succeeded: boolean `[trial]`.
        control: What a control reaches.
        substantial: Whether something has to change.
        reason: What was done.
        comparisons: How many comparisons are made at once.
    """
    needed = least_trials(AT_LEAST, comparisons)
    parts = [share(part, comparisons) for part in trials if len(part) >= needed]
    if not parts:
        most = max((len(part) for part in trials), default=0)
        return untestable(claim, kind, f"{most} pairs of inputs could be asked, where {needed} are needed")
    least = min(parts, key=lambda part: part.score)
    low, high = (min(getattr(part, end) for part in parts) for end in ("low", "high"))
    return Claim(claim, kind, judged(parts), least.score, low, high, control, least.n, substantial, reason)


def untestable(claim: str, kind: Level, why: str) -> Claim:
    """A claim that cannot be tested on these inputs, or in this model."""
    nan = float("nan")
    return Claim(claim, kind, UNTESTABLE, nan, nan, nan, nan, 0, False, why)


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """One row per claim: columns as the fields of `Claim`."""
    return pd.DataFrame([vars(claim) for claim in claims], columns=list(Claim.__dataclass_fields__))
