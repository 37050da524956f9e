"""Programs that put numbers in order, and that find the highest one or the next."""

from lab.programs.counting import count
from lab.programs.selectors import HIGHER, LOWER
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectBest,
    SequenceMap,
    SOp,
    indices,
    tokens,
)


def highest() -> SOp:
    """The highest number: the one that scores best by itself."""
    return Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, tokens), tokens).named("highest")


def highest_by_rank() -> SOp:
    """The highest number: the one that no other exceeds."""
    rank = count(HIGHER, "how_many_exceed")
    return Aggregate(Select(rank, tokens, lambda key, query: key == 0), tokens).named("highest_by_rank")


def sorted_by_counts() -> SOp:
    """Numbers 0 to 2 in order: a position tells its number by how many are lower than each."""
    zeros = count(Select(tokens, tokens, lambda key, query: key == 0), "zeros")
    below_two = count(Select(tokens, tokens, lambda key, query: key < 2), "below_two")
    above_zeros = SequenceMap(lambda i, n: i >= n, indices, zeros).named("above_zeros")
    above_ones = SequenceMap(lambda i, n: i >= n, indices, below_two).named("above_ones")
    return SequenceMap(lambda x, y: int(x) + int(y), above_zeros, above_ones).named("sorted_by_counts")


def sort_by_ranking() -> SOp:
    """Different tokens in ascending order: each counts the smaller ones, and positions fetch their rank."""
    target = Select(count(LOWER, "rank"), indices, Comparison.EQ).named("rank_is_index")
    return Aggregate(target, tokens).named("sort_by_ranking")


def next_larger_listed(size: int) -> SOp:
    """The smallest number larger than mine of the first `size`: it is selected."""
    listed = SequenceMap(lambda token, i: token if i < size else -1, tokens, indices).named("listed")
    smallness = Map(lambda token: -token, tokens).named("smallness")
    closest = SelectBest(listed, tokens, Comparison.GT, smallness).named("closest_listed")
    return Aggregate(closest, tokens).named("next_larger_listed")
