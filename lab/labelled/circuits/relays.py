"""Two steps by way of one position, or of another."""

from lab.labelled.circuits.circuit import Circuit, moved, of_program
from rasplens.compile.rasp import SOp, tokens

FAMILY = "relay over another position"


def three_on_by_one() -> SOp:
    """Three positions on of 5: one, then two."""
    return moved(moved(tokens, lambda q: (q - 1) % 5, "one_first"), lambda q: (q - 2) % 5, "three_on_by_one")


def three_on_by_two() -> SOp:
    """Three positions on of 5: two, then one."""
    return moved(moved(tokens, lambda q: (q - 2) % 5, "two_first"), lambda q: (q - 1) % 5, "three_on_by_two")


def first_by_middle() -> SOp:
    """The first of 5 tokens everywhere: by way of the middle."""
    relay = moved(tokens, lambda q: 0 if q == 2 else q, "at_middle")
    return moved(relay, lambda q: 2, "first_by_middle")


def first_by_last() -> SOp:
    """The first of 5 tokens everywhere: by way of the last."""
    relay = moved(tokens, lambda q: 0 if q == 4 else q, "at_last")
    return moved(relay, lambda q: 4, "first_by_last")


def backwards_by_one() -> SOp:
    """Backwards: one position on, and backwards from there."""
    return moved(moved(tokens, lambda q: (q - 1) % 5, "on_one"), lambda q: (5 - q) % 5, "backwards_by_one")


def backwards_by_two() -> SOp:
    """Backwards: two positions on, and backwards from there."""
    return moved(moved(tokens, lambda q: (q - 2) % 5, "on_two"), lambda q: (6 - q) % 5, "backwards_by_two")


CIRCUITS: tuple[Circuit, ...] = (
    of_program("three_on", "abcd", three_on_by_one, three_on_by_two, family=FAMILY),
    of_program("first_everywhere", "abcd", first_by_middle, first_by_last, family=FAMILY),
    of_program("backwards", "abc", backwards_by_one, backwards_by_two, family=FAMILY),
)
"""The circuits of this family."""
