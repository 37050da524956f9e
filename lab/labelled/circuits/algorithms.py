"""Circuits whose programs give equal answers by different algorithms."""

from lab.labelled.circuits.circuit import Circuit, of_program
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    tokens,
)
from rasplens.compile.rasp.programs import sort

FAMILY = "another algorithm"


def highest_directly() -> SOp:
    """The highest number: the one that scores best by itself."""
    best = SelectBest(tokens, tokens, Comparison.TRUE, tokens)
    return Aggregate(best, tokens).named("highest_directly")


def highest_by_rank() -> SOp:
    """The highest number: the one that no other exceeds."""
    rank = SelectorWidth(Select(tokens, tokens, Comparison.GT)).named("how_many_exceed")
    return Aggregate(Select(rank, tokens, lambda key, query: key == 0), tokens).named("highest_by_rank")


def sorted_by_rank() -> SOp:
    """Numbers 0 to 2 in order: each goes behind all that are lower, or equal and before it."""
    return sort().named("sorted_by_rank")


def sorted_by_counts() -> SOp:
    """Numbers 0 to 2 in order: a position tells its number by how many are lower than each."""
    zeros = SelectorWidth(Select(tokens, tokens, lambda key, query: key == 0)).named("zeros")
    below_two = SelectorWidth(Select(tokens, tokens, lambda key, query: key < 2)).named("below_two")
    above_zeros = SequenceMap(lambda i, n: i >= n, indices, zeros).named("above_zeros")
    above_ones = SequenceMap(lambda i, n: i >= n, indices, below_two).named("above_ones")
    return SequenceMap(lambda x, y: int(x) + int(y), above_zeros, above_ones).named("sorted_by_counts")


def first_a_directly() -> SOp:
    """Where the first `a` stands; 5 if nowhere: the one that scores best by its place."""
    earliness = Map(lambda i: -i, indices).named("how_early")
    first = SelectBest(tokens, tokens, lambda key, query: key == "a", earliness)
    return Aggregate(first, indices, default=5).named("first_a_directly")


def first_a_by_counting() -> SOp:
    """Where the first `a` stands; 5 if nowhere: how many positions have no `a` up to them."""
    is_a = Select(tokens, tokens, lambda key, query: key == "a")
    so_far = SelectorWidth(is_a & Select(indices, indices, Comparison.LEQ)).named("as_so_far")
    return SelectorWidth(Select(so_far, tokens, lambda key, query: key == 0)).named("first_a_by_counting")


CIRCUITS: tuple[Circuit, ...] = (
    of_program("highest", range(4), highest_directly, highest_by_rank, family=FAMILY),
    of_program("sorted", range(3), sorted_by_rank, sorted_by_counts, family=FAMILY),
    of_program("first_a", "abc", first_a_directly, first_a_by_counting, family=FAMILY),
)
"""The circuits of this family."""
