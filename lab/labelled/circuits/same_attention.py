"""Heads that attend alike, and carry and combine other variables."""

from lab.labelled.circuits.circuit import Circuit, moved, of_program
from rasplens.compile.rasp import SequenceMap, SOp, tokens

FAMILY = "same attention, other variables"


def _before() -> SOp:
    return moved(tokens, lambda q: (q - 1) % 5, "before")


def _two_on(of: SOp, name: str) -> SOp:
    return moved(of, lambda q: (q - 2) % 5, name)


def product_from_sum() -> SOp:
    """A token two positions before, times the one before that and 1, by their sum: of numbers 0 to 2, modulo 3."""
    total = SequenceMap(lambda x, y: (x + y) % 3, tokens, _before()).named("total")
    own, both = _two_on(tokens, "own_two_on"), _two_on(total, "total_two_on")
    return SequenceMap(lambda x, s: x * ((s - x) % 3 + 1) % 3, own, both).named("product_from_sum")


def product_from_difference() -> SOp:
    """A token two positions before, times the one before that and 1, by their difference: modulo 3."""
    off = SequenceMap(lambda x, y: (x - y) % 3, tokens, _before()).named("off")
    own, both = _two_on(tokens, "token_two_on"), _two_on(off, "off_two_on")
    return SequenceMap(lambda x, d: x * ((x - d) % 3 + 1) % 3, own, both).named("product_from_difference")


def range_from_highest() -> SOp:
    """How far a token two positions before is from the one before it: by the higher one and their sum."""
    total = SequenceMap(lambda x, y: x + y, tokens, _before()).named("sum_of_both")
    high = SequenceMap(max, tokens, _before()).named("higher")
    both = _two_on(total, "sum_two_on"), _two_on(high, "higher_two_on")
    return SequenceMap(lambda s, h: 2 * h - s, *both).named("range_from_highest")


def range_from_lowest() -> SOp:
    """How far a token two positions before is from the one before it: by the lower one and their sum."""
    total = SequenceMap(lambda x, y: x + y, tokens, _before()).named("sum_of_two")
    low = SequenceMap(min, tokens, _before()).named("lower")
    both = _two_on(total, "sum_two_before"), _two_on(low, "lower_two_on")
    return SequenceMap(lambda s, h: s - 2 * h, *both).named("range_from_lowest")


def both_ends_by_token() -> SOp:
    """The first and the last of 7 bits, as a number: each is read."""
    first = moved(tokens, lambda q: 0, "first_bit")
    last = moved(tokens, lambda q: 6, "last_bit")
    return SequenceMap(lambda x, y: 2 * x + y, first, last).named("both_ends_by_token")


def both_ends_by_equality() -> SOp:
    """The first and the last of 7 bits, as a number: of the last it is read whether it is the first."""
    first = moved(tokens, lambda q: 0, "bit_at_start")
    equal = SequenceMap(lambda x, y: x == y, tokens, first).named("like_first")
    last = moved(equal, lambda q: 6, "last_like_first")
    return SequenceMap(lambda x, same: 2 * x + (x if same else 1 - x), first, last).named("both_ends_by_equality")


CIRCUITS: tuple[Circuit, ...] = (
    of_program("product", range(3), product_from_sum, product_from_difference, family=FAMILY),
    of_program("range", range(3), range_from_highest, range_from_lowest, family=FAMILY),
    of_program("both_ends", range(2), both_ends_by_token, both_ends_by_equality, 7, FAMILY),
)
"""The circuits of this family."""
