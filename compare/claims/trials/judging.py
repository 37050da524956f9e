"""How trials are judged: the share that came out as claimed, its interval, and the status that follows.

How many trials there are is often known beforehand. The interval is then that of a proportion (Wilson 1927,
"Probable inference, the law of succession, and statistical inference"). Where asking stopped because of what came
out, it is a confidence sequence, which covers the true share however long one asks (Robbins 1970, "Statistical
methods related to the law of the iterated logarithm"; Howard et al. 2021, "Time-uniform, nonparametric,
nonasymptotic confidence sequences").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy
from scipy.stats import binomtest, norm

from rasplens.compare.claims.trials.independent import Trials

Status = Literal["holds", "in part", "fails", "cannot tell", "not testable"]

HOLDS: Final = "holds"
IN_PART: Final = "in part"
FAILS: Final = "fails"
OPEN: Final = "cannot tell"
UNTESTABLE: Final = "not testable"

AT_LEAST: Final = 0.75
"""A claim holds if the lower end of its interval is at least this, which true programs reach."""

AT_MOST: Final = 0.65
"""A claim fails if the upper end of its interval is below this: hardly a true program's claims do."""

CONFIDENCE: Final = 0.95

PRIOR: Final = 0.5
"""Of the beta distribution behind a confidence sequence: it is narrowest where nearly all trials agree."""


@dataclass(frozen=True)
class Share:
    """A share of trials with its interval."""

    score: float
    low: float
    high: float
    n: int


def share(trials: Trials, comparisons: int = 1) -> Share:
    """The share of trials that succeeded, with the interval that covers 95 % over that many comparisons together.

    Args:
        trials: At least one.
        comparisons: How many comparisons are made at once (Bonferroni).
    """
    return _share(int(trials.right.sum()), len(trials), comparisons, trials.stopped)


def known_share(score: float, n: int, comparisons: int = 1) -> Share:
    """The interval of a score of which only the number of trials is known."""
    return _share(round(score * n), n, comparisons, stopped=False)


def _share(right: int, n: int, comparisons: int, stopped: bool) -> Share:
    error = (1 - CONFIDENCE) / comparisons
    if stopped:
        low, high = confidence_sequence(right, n, error)
    else:
        low, high = binomtest(right, n).proportion_ci(1 - error, method="wilson")
    return Share(right / n, float(low), float(high), n)


def confidence_sequence(right: int, n: int, error: float) -> tuple[float, float]:
    """The shares that so many of n trials do not speak against, however it was decided when to stop.

    Under the true share, the likelihood of the trials averaged over a beta distribution of shares, over their
    likelihood, is a martingale. It ever reaches 1 / error with a probability of at most that error (Ville's
    inequality). So the shares at which it does not are an interval for all n at once.

    Args:
        right: How many trials succeeded.
        n: Of how many.
        error: The probability with which the interval may ever miss the true share.
    """
    averaged = betaln(PRIOR + right, PRIOR + n - right) - betaln(PRIOR, PRIOR)

    def evidence(share: float) -> float:
        return float(averaged - xlogy(right, share) - xlog1py(n - right, -share) + math.log(error))

    tiny = np.finfo(float).tiny
    low = brentq(evidence, tiny, right / n) if right else 0.0
    high = brentq(evidence, right / n, 1 - np.finfo(float).epsneg) if right < n else 1.0
    return low, high


def least_trials(at_least: float, comparisons: int = 1) -> int:
    """How many trials a claim needs: with fewer its interval would reach lower even if all of them succeeded."""
    z = norm.ppf(1 - (1 - CONFIDENCE) / comparisons / 2)
    return math.ceil(at_least / (1 - at_least) * z**2)


def judged(parts: Sequence[Share], at_least: float = AT_LEAST) -> Status:
    """The status of a claim whose parts all have to hold, each from some share on."""
    if all(part.low >= at_least for part in parts):
        return HOLDS
    return FAILS if any(part.high < AT_MOST for part in parts) else OPEN
