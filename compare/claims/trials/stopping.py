"""Asking until a claim is decided.

A few trials that all come out as claimed need no more: no class of inputs can then be suspected. Nor do trials
that refute the claim. Else as many are asked as a comparison is configured to; and more, while the claim is open.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final

from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.judging import AT_LEAST, FAILS, OPEN, judged, share

FIRST: Final = 100
"""Trials of a part after which asking may stop. What fails on 5 % of the inputs shows in them at 99 %."""

MOST_TIMES: Final = 4
"""A claim that stays open is asked so many times as many questions as the comparison is configured to."""


def looks(n: int) -> tuple[int, ...]:
    """After how many questions asking may stop, where a comparison is configured to ask n."""
    return (min(FIRST, n), *(times * n for times in range(1 + (n <= FIRST), MOST_TIMES + 1)))


def until_decided(
    ask: Callable[[int], Sequence[Trials]], looks: Sequence[int], comparisons: int, at_least: float = AT_LEAST
) -> tuple[Trials, ...]:
    """Trials of the parts of a claim, until it is decided.

    A part of which too few questions can be found stops nothing: its number does not depend on its outcome.

    Args:
        ask: From a number, so many other trials of each part, or as many as can be found.
        looks: After how many asking may stop: at first if the claim is clear, then if it is decided.
        comparisons: How many comparisons are made at once.
        at_least: The share from which on the claim holds.
    """
    parts = tuple(ask(looks[0]))
    stops = [len(part) >= looks[0] for part in parts]
    settled: Callable[[Sequence[Trials], int], bool] = is_clear
    for before, total in pairwise(looks):
        if settled([replace(part, stopped=True) for part in _some(parts, stops)], comparisons):
            break
        parts = tuple(part.and_more(others) for part, others in zip(parts, ask(total - before), strict=True))
        settled = partial(is_decided, at_least=at_least)
    return tuple(replace(part, stopped=may_stop) for part, may_stop in zip(parts, stops, strict=True))


def is_clear(parts: Sequence[Trials], comparisons: int) -> bool:
    """Whether all trials came out as claimed, or the claim fails."""
    if all(part.right.all() for part in parts):
        return True
    return judged([share(part, comparisons) for part in parts]) == FAILS


def is_decided(parts: Sequence[Trials], comparisons: int, at_least: float = AT_LEAST) -> bool:
    """Whether the claim holds or fails."""
    return judged([share(part, comparisons) for part in parts], at_least) != OPEN


def _some(parts: Sequence[Trials], which: Sequence[bool]) -> list[Trials]:
    return [part for part, taken in zip(parts, which, strict=True) if taken]
