"""Programs that count what a selector selects."""

from lab.programs.selectors import HIGHER, LOWER_OR_EQUAL, SAME, SO_FAR, holds
from rasplens.compile.rasp import (
    Select,
    Selector,
    SelectorWidth,
    SequenceMap,
    SOp,
    causal,
    indices,
    numerical,
    tokens,
)


def count(where: Selector, name: str) -> SOp:
    """How much a selector selects."""
    return SelectorWidth(where).named(name)


def count_and_add(where: Selector, width: str, more: int, name: str) -> SOp:
    """How much a selector selects, in a variable `width`, and so many more."""
    return (count(where, width) + more).named(name)


def lower_and_equal() -> SOp:
    """How many lower numbers there are elsewhere: those that are not higher, less those that are equal."""
    return (count(LOWER_OR_EQUAL, "not_higher") - count(SAME, "equal")).named("lower_and_equal")


def rank_by_higher() -> SOp:
    """How many of 5 tokens come no later in the alphabet: by counting those that come later."""
    return (5 - count(HIGHER, "later")).named("rank_by_higher")


def histogram_by_counts() -> SOp:
    """How often the own token occurs, among 7 tokens of two kinds: `a`s are counted, `b`s are the others."""
    of_a = count(holds("a"), "count_a")
    return SequenceMap(lambda t, n: n if t == "a" else 7 - n, tokens, of_a).named("histogram_by_counts")


def share_by_counts() -> SOp:
    """The share of `a` so far: a count, divided by the position."""
    seen = Select(tokens, indices, lambda key, query: key == "a") & SO_FAR
    so_far = count(seen, "count_so_far")
    return numerical(SequenceMap(lambda n, i: n / (i + 1), so_far, indices)).named("share_by_counts")


def depth_by_looking() -> SOp:
    """How many brackets are open: the opening and the closing ones so far are counted."""
    opened, closed = count(holds("(") & SO_FAR, "opened"), count(holds(")") & SO_FAR, "closed")
    return causal(opened - closed).named("depth_by_looking")
