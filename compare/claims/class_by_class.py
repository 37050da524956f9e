"""Claims judged class by class: one that fails on a class of inputs fails there, however well it does elsewhere.

Classes are searched for in the trials of each claim, and in those of all claims together: where another mechanism
decides, several claims fail on the same inputs. In a class that is found the claim is asked anew, so that the
trials by which it was found do not judge it. It holds if it does so there as well.

Where a claim rests on a search, such as for a variable's site, the search may be at fault. If in the class it errs
in the compiled model as well, it says nothing there. And it is made anew in the class: if it then finds what comes
out as claimed, the claim is open.

A class of hardly any answers is left out: what a trained model does there is no mechanism, and averages bear it.

A class of few trials may have been found by chance: it is suspected. There too a claim is asked anew, and fails
only if the new trials refute it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rasplens.compare.claims.claim import Claim
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import (
    LEAST_SHARE,
    InputClass,
    suspected_classes,
    worst_class,
)
from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    AT_MOST,
    FAILS,
    HOLDS,
    OPEN,
    Share,
    judged,
    least_trials,
    share,
)

FoundIn = Literal["own", "together", "suspected"]
"""A class is evident in a claim's own trials, or in those of all claims together; or few trials point to it."""


@dataclass(frozen=True)
class FailingClass:
    """A class of inputs in which trials fail.

    Attributes:
        words: The class.
        share: The share of the answers asked for that are of the class.
        inside: The trials in the class that succeeded.
        elsewhere: Those that did elsewhere.
        found_anew: Whether another search, in the class alone, finds what comes out as claimed.
    """

    words: str
    share: float
    inside: Share
    elsewhere: Share
    found_anew: bool = False

    @property
    def fails(self) -> bool:
        """Whether trials in the class fail; else it is not known whether they come out as claimed."""
        return self.inside.high < AT_MOST and not self.found_anew

    def claim(self, whole: Claim) -> Claim:
        """A claim that holds but in this class; one that is open there is open."""
        where = f"{self.words} ({self.share:.0%} of the answers)"
        reason = f"{whole.reason}; where {where}: {self.inside.score:.2f}, elsewhere {self.elsewhere.score:.2f}"
        ends = {name: getattr(self.inside, name) for name in ("score", "low", "high", "n")}
        if self.found_anew:
            reason = f"{reason}; at another site the model does there as the program says"
        if not self.fails or not whole.subject.can_fail:
            return replace(whole, status=OPEN, **ends, reason=reason)
        return replace(whole, status=FAILS, **ends, reason=reason, except_where=where)


def class_by_class(claims: Sequence[Claim], comparisons: int) -> list[Claim]:
    """Claims that were judged on average, each judged where trials fail as well; without their trials."""
    parts = [part for claim in claims for part in claim.trials if part.right.mean() >= AT_MOST]
    together, suspected = worst_class(*parts), suspected_classes(*parts)
    judged_claims = (_in_every_class(claim, together, suspected, comparisons) for claim in claims)
    return [replace(claim, trials=(), others=(), again=None, searched=None) for claim in judged_claims]


def _in_every_class(
    whole: Claim, together: InputClass | None, suspected: Sequence[InputClass], comparisons: int
) -> Claim:
    own = [worst_class(part) for part in (*whole.trials, *whole.others)]
    evident = (one for one in (*own, together) if one is not None and one.share >= LEAST_SHARE)
    for found in dict.fromkeys(evident):
        worse = _worst_part(whole, found, comparisons, "own" if found in own else "together")
        if worse is not None:
            return worse.claim(whole)
    if whole.again is None or whole.status != HOLDS:
        return whole
    others = [one for part in whole.trials for one in suspected_classes(part)]
    for found in (several := dict.fromkeys((*others, *suspected))):
        worse = _worst_part(whole, found, comparisons * len(several), "suspected")
        if worse is not None and (worse.fails or worse.found_anew):
            return worse.claim(whole)
    return whole


def _worst_part(whole: Claim, found: InputClass, comparisons: int, found_in: FoundIn) -> FailingClass | None:
    """The part of a claim that fails in a class while the claim holds elsewhere, or that may fail there."""
    inside = [found.of(part) for part in whole.trials]
    rows = list(zip(whole.trials, inside, strict=True))
    outside = [share(part.of(~of_class), comparisons) for part, of_class in rows if not of_class.all()]
    failing = (~part.right[found.of(part)] for part in (*whole.trials, *whole.others))
    if not outside or not any(wrong.any() for wrong in failing):
        return None
    fresh = () if whole.again is None else whole.again(found)
    if found_in == "suspected" and not fresh:
        return None
    asked = [part.of(found.of(part)) for part in (fresh or whole.trials)]
    needed = least_trials(AT_LEAST, comparisons) if fresh else 1
    within = [share(part, comparisons) for part in asked if len(part) >= needed]
    if not within:
        return None
    worst, elsewhere = min(within, key=lambda one: one.score), min(outside, key=lambda one: one.score)
    part = FailingClass(found.words, found.share, worst, elsewhere)
    if part.fails and judged(outside) == HOLDS:
        return _after_search(part, whole, found, comparisons)
    in_doubt = whole.status == HOLDS and worst.score < AT_MOST and (bool(fresh) or found_in == "own")
    return _after_search(part, whole, found, comparisons) if in_doubt else None


def _after_search(part: FailingClass, whole: Claim, found: InputClass, comparisons: int) -> FailingClass | None:
    """A class in which a claim may fail; None where the search that it rests on errs in the compiled model too."""
    if whole.searched is None:
        return part
    anew = whole.searched(found)

    def hold(trials: Sequence[Trials]) -> bool:
        inside = [one for one in (part.of(found.of(part)) for part in trials) if len(one)]
        return bool(inside) and judged([share(one, comparisons) for one in inside]) == HOLDS

    return replace(part, found_anew=hold(anew.learned)) if hold(anew.compiled) else None


def failing_class(trials: Trials, comparisons: int) -> FailingClass | None:
    """The class of inputs in which trials fail; None if there is none, or none that can be told from chance.

    Args:
        trials: Of one part of a claim.
        comparisons: How many comparisons are made at once.
    """
    found = worst_class(trials)
    if found is None or (inside := found.of(trials)).all():
        return None
    within, elsewhere = (share(trials.of(rows), comparisons) for rows in (inside, ~inside))
    one = FailingClass(found.words, found.share, within, elsewhere)
    return one if one.fails else None
