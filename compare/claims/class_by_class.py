"""Claims judged class by class: one that fails on a class of inputs fails there, however well it does elsewhere.

Classes are searched for in the trials of each claim, and in those of all claims together: where another mechanism
decides, several claims fail on the same inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rasplens.compare.claims.claim import AT_MOST, FAILS, HOLDS, OPEN, Claim, Share, judged, share
from rasplens.compare.claims.classes import InputClass, worst_class
from rasplens.compare.claims.trials import Trials


@dataclass(frozen=True)
class FailingClass:
    """A class of inputs in which trials fail.

    Attributes:
        words: The class.
        share: The share of the answers asked for that are of the class.
        inside: The trials in the class that succeeded.
        elsewhere: Those that did elsewhere.
    """

    words: str
    share: float
    inside: Share
    elsewhere: Share

    def claim(self, whole: Claim) -> Claim:
        """A claim that holds but in this class."""
        where = f"{self.words} ({self.share:.0%} of the answers)"
        reason = f"{whole.reason}; where {where}: {self.inside.score:.2f}, elsewhere {self.elsewhere.score:.2f}"
        ends = {name: getattr(self.inside, name) for name in ("score", "low", "high", "n")}
        status = FAILS if whole.subject.can_fail else OPEN
        return replace(whole, status=status, **ends, reason=reason, except_where=where)


def class_by_class(claims: Sequence[Claim], comparisons: int) -> list[Claim]:
    """Claims that were judged on average, each judged where trials fail as well; without their trials."""
    parts = [part for claim in claims for part in claim.trials]
    together = worst_class(*(part for part in parts if part.right.mean() >= AT_MOST))
    return [replace(_in_every_class(claim, together, comparisons), trials=()) for claim in claims]


def _in_every_class(whole: Claim, together: InputClass | None, comparisons: int) -> Claim:
    for of_all in (False, True):
        split = [failing_class(part, comparisons, together if of_all else None) for part in whole.trials]
        elsewhere = [
            share(part.right, comparisons) if one is None else one.elsewhere
            for one, part in zip(split, whole.trials, strict=True)
        ]
        failing = [one for one in split if one is not None]
        if failing and judged(elsewhere) == HOLDS:
            return min(failing, key=lambda one: one.inside.score).claim(whole)
    return whole


def failing_class(trials: Trials, comparisons: int, found: InputClass | None = None) -> FailingClass | None:
    """The class of inputs in which trials fail; None if there is none, or none that can be told from chance.

    Args:
        trials: Of one part of a claim.
        comparisons: How many comparisons are made at once.
        found: A class that was found elsewhere; by default the one that these trials show.
    """
    found = worst_class(trials) if found is None else found
    if found is None or not (inside := found.of(trials)).any() or inside.all():
        return None
    within, elsewhere = (share(trials.right[rows], comparisons) for rows in (inside, ~inside))
    return FailingClass(found.words, found.share, within, elsewhere) if within.high < AT_MOST else None
