"""Programs that combine tokens of several positions, in one order or another, or by way of other variables."""

from collections.abc import Callable

from lab.programs.moving import moved
from lab.programs.selectors import always, before
from rasplens.compile.rasp import SequenceMap, SOp, Value, tokens

Operation = Callable[[Value, Value], Value]


def from_own(operation: Operation, name: str) -> SOp:
    """The own token, of 5 that go round, with the one before it, then with the one before that."""
    first = SequenceMap(operation, tokens, _term(1, 5)).named(f"{name}_of_first_two")
    return SequenceMap(operation, first, _term(2, 5)).named(f"{name}_from_own")


def from_far(operation: Operation, name: str) -> SOp:
    """The two tokens before, of 5 that go round, with each other, then with the own one."""
    last = SequenceMap(operation, _term(1, 5), _term(2, 5)).named(f"{name}_of_last_two")
    return SequenceMap(operation, tokens, last).named(f"{name}_from_far")


def parity_in_a_row() -> SOp:
    """Whether 4 of 7 bits, this one and those before it, add up to an odd number: one after the other."""
    total: SOp = tokens
    for steps in (1, 2, 3):
        total = SequenceMap(lambda x, y: x ^ y, total, _term(steps, 7)).named(f"parity_of_{steps + 1}")
    return total.named("parity_in_a_row")


def parity_by_halves() -> SOp:
    """Whether 4 of 7 bits, this one and those before it, add up to an odd number: two and two."""
    near = SequenceMap(lambda x, y: x ^ y, tokens, _term(1, 7)).named("near_half")
    far = SequenceMap(lambda x, y: x ^ y, _term(2, 7), _term(3, 7)).named("far_half")
    return SequenceMap(lambda x, y: x ^ y, near, far).named("parity_by_halves")


def product_from_sum() -> SOp:
    """A token two positions before, times the one before that and 1, by their sum: of numbers 0 to 2, modulo 3."""
    total = _with_before(lambda x, y: (x + y) % 3, "total")
    both = _two_on(tokens, "own_two_on"), _two_on(total, "total_two_on")
    return SequenceMap(lambda x, s: x * ((s - x) % 3 + 1) % 3, *both).named("product_from_sum")


def product_from_difference() -> SOp:
    """A token two positions before, times the one before that and 1, by their difference: modulo 3."""
    off = _with_before(lambda x, y: (x - y) % 3, "off")
    both = _two_on(tokens, "token_two_on"), _two_on(off, "off_two_on")
    return SequenceMap(lambda x, d: x * ((x - d) % 3 + 1) % 3, *both).named("product_from_difference")


def range_from_highest() -> SOp:
    """How far a token two positions before is from the one before it: by the higher one and their sum."""
    total, high = _with_before(lambda x, y: x + y, "sum_of_both"), _with_before(max, "higher")
    both = _two_on(total, "sum_two_on"), _two_on(high, "higher_two_on")
    return SequenceMap(lambda s, h: 2 * h - s, *both).named("range_from_highest")


def range_from_lowest() -> SOp:
    """How far a token two positions before is from the one before it: by the lower one and their sum."""
    total, low = _with_before(lambda x, y: x + y, "sum_of_two"), _with_before(min, "lower")
    both = _two_on(total, "sum_two_before"), _two_on(low, "lower_two_on")
    return SequenceMap(lambda s, h: s - 2 * h, *both).named("range_from_lowest")


def both_ends_by_token() -> SOp:
    """The first and the last of 7 bits, as a number: each is read."""
    ends = moved(tokens, always(0), "first_bit"), moved(tokens, always(6), "last_bit")
    return SequenceMap(lambda x, y: 2 * x + y, *ends).named("both_ends_by_token")


def both_ends_by_equality() -> SOp:
    """The first and the last of 7 bits, as a number: of the last it is read whether it is the first."""
    first = moved(tokens, always(0), "bit_at_start")
    last = moved((tokens == first).named("like_first"), always(6), "last_like_first")
    return SequenceMap(lambda x, same: 2 * x + (x if same else 1 - x), first, last).named("both_ends_by_equality")


def _term(steps: int, length: int) -> SOp:
    return moved(tokens, before(steps, length), f"{steps}_before")


def _with_before(operation: Operation, name: str) -> SOp:
    """The own token, of 5 that go round, and the one before it."""
    return SequenceMap(operation, tokens, moved(tokens, before(1, 5), "before")).named(name)


def _two_on(of: SOp, name: str) -> SOp:
    return moved(of, before(2, 5), name)
