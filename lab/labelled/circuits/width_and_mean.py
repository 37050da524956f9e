"""Counting: by the width of a selector, or by a mean of numbers."""

from lab.labelled.circuits.circuit import Circuit, of_program
from lab.labelled.circuits.uniform_attention import mean
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    numerical,
    tokens,
)

FAMILY = "width against mean"


def _is_a() -> Select:
    return Select(tokens, tokens, lambda key, query: key == "a")


def count_by_width() -> SOp:
    """How many `a`s there are: the width of a selector."""
    return SelectorWidth(_is_a()).named("count_by_width")


def count_by_mean() -> SOp:
    """How many `a`s there are among 5 tokens: 5 times a mean."""
    return Map(lambda x: round(5 * x), mean(tokens == "a", "mean_of_a")).named("count_by_mean")


def own_by_width() -> SOp:
    """How often the own token occurs: the width of a match."""
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("own_by_width")


def own_by_mean() -> SOp:
    """How often the own token occurs among 7 tokens of two kinds: by the mean of one kind."""
    share = mean(tokens == "a", "share_of_as")
    return SequenceMap(lambda t, x: round(7 * (x if t == "a" else 1 - x)), tokens, share).named("own_by_mean")


def so_far_by_width() -> SOp:
    """How many `a`s there are up to here: the width of a selector."""
    return SelectorWidth(_is_a() & Select(indices, indices, Comparison.LEQ)).named("so_far_by_width")


def so_far_by_mean() -> SOp:
    """How many `a`s there are up to here: their share so far, times how many positions that are."""
    so_far = Select(indices, indices, Comparison.LEQ)
    share = numerical(Aggregate(so_far, numerical(tokens == "a"), default=0)).named("share_so_far")
    return SequenceMap(lambda x, i: round(x * (i + 1)), share, indices).named("so_far_by_mean")


def most_by_width() -> SOp:
    """Whether most of 5 tokens are `a`: by the width of a selector."""
    return Map(lambda n: n > 2, SelectorWidth(_is_a()).named("width_of_a")).named("most_by_width")


def most_by_mean() -> SOp:
    """Whether most of 5 tokens are `a`: by a mean."""
    return Map(lambda x: x > 0.5, mean(tokens == "a", "mean_a")).named("most_by_mean")


CIRCUITS: tuple[Circuit, ...] = (
    of_program("count", "abc", count_by_width, count_by_mean, family=FAMILY),
    of_program("own_count", "ab", own_by_width, own_by_mean, 7, FAMILY),
    of_program("so_far", "abc", so_far_by_width, so_far_by_mean, family=FAMILY),
    of_program("most", "abc", most_by_width, most_by_mean, family=FAMILY),
)
"""The circuits of this family."""
