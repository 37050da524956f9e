"""Heads that attend to everything alike, and average other numbers."""

from lab.labelled.circuits.circuit import Circuit, everything, of_program
from rasplens.compile.rasp import Aggregate, Map, SequenceMap, SOp, numerical, tokens

FAMILY = "uniform attention both"


def mean(of: SOp, name: str) -> SOp:
    """The mean of numbers over all positions."""
    return numerical(Aggregate(everything(), numerical(of), default=0)).named(name)


def share_of_own() -> SOp:
    """The share of `a`: their mean."""
    return mean(tokens == "a", "share_of_own")


def share_of_rest() -> SOp:
    """The share of `a`: 1 less the share of all others."""
    rest = mean(tokens != "a", "rest")
    return numerical(Map(lambda x: 1 - x, rest)).named("share_of_rest")


def more_by_difference() -> SOp:
    """Whether there are more `a`s than `b`s: by one mean, in which they count against each other."""
    sign = Map(lambda t: {"a": 1, "b": -1}.get(t, 0), tokens).named("sign")
    return Map(lambda x: x > 0.01, mean(sign, "difference")).named("more_by_difference")


def more_by_both() -> SOp:
    """Whether there are more `a`s than `b`s: by two means."""
    both = mean(tokens == "a", "share_of_a"), mean(tokens == "b", "share_of_b")
    return SequenceMap(lambda x, y: x > y + 0.01, *both).named("more_by_both")


def sum_by_total() -> SOp:
    """The sum of 4 numbers 0 to 2, modulo 3: by their mean."""
    return Map(lambda x: round(4 * x) % 3, mean(tokens, "mean_number")).named("sum_by_total")


def sum_by_kinds() -> SOp:
    """The sum of 4 numbers 0 to 2, modulo 3: by how many 1s there are, and how many 2s."""
    both = mean(tokens == 1, "share_of_1"), mean(tokens == 2, "share_of_2")
    return SequenceMap(lambda x, y: round(4 * x + 8 * y) % 3, *both).named("sum_by_kinds")


CIRCUITS: tuple[Circuit, ...] = (
    of_program("share_of_all", "abc", share_of_own, share_of_rest, family=FAMILY),
    of_program("more", "abc", more_by_difference, more_by_both, family=FAMILY),
    of_program("sum", range(3), sum_by_total, sum_by_kinds, 4, FAMILY),
)
"""The circuits of this family."""
