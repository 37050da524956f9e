"""Selectors that select more than is needed, and take it away again, or less than there is."""

from lab.labelled.circuits.circuit import Circuit, of_program
from lab.labelled.circuits.looking_and_counting import looking
from rasplens.compile.rasp import (
    Comparison,
    Map,
    Select,
    SelectBest,
    Selector,
    SelectorWidth,
    SOp,
    indices,
    tokens,
)

SUPERSET = "superset of the true selector"
SUBSET = "subset of the true selector"


def _own() -> Selector:
    return Select(tokens, tokens, Comparison.EQ)


def _others() -> Selector:
    return Select(indices, indices, Comparison.NEQ)


def elsewhere_exactly() -> SOp:
    """How often the own token stands elsewhere: there alone."""
    return SelectorWidth(_own() & _others()).named("elsewhere_exactly")


def elsewhere_and_here() -> SOp:
    """How often the own token stands elsewhere: everywhere, less once for here."""
    return Map(lambda n: n - 1, SelectorWidth(_own()).named("everywhere")).named("elsewhere_and_here")


def lower_exactly() -> SOp:
    """How many lower numbers there are elsewhere: those alone."""
    return SelectorWidth(Select(tokens, tokens, Comparison.LT)).named("lower_exactly")


def lower_and_equal() -> SOp:
    """How many lower numbers there are elsewhere: those that are not higher, less those that are equal."""
    not_higher = SelectorWidth(Select(tokens, tokens, Comparison.LEQ)).named("not_higher")
    return (not_higher - SelectorWidth(_own()).named("equal")).named("lower_and_equal")


def earlier_exactly() -> SOp:
    """How often the own token stood before: before alone."""
    return SelectorWidth(_own() & Select(indices, indices, Comparison.LT)).named("earlier_exactly")


def earlier_and_here() -> SOp:
    """How often the own token stood before: up to here, less once."""
    so_far = SelectorWidth(_own() & Select(indices, indices, Comparison.LEQ)).named("up_to_here")
    return Map(lambda n: n - 1, so_far).named("earlier_and_here")


def a_anywhere() -> SOp:
    """Whether there is an `a`: by looking at all of them."""
    return looking(Select(tokens, tokens, lambda key, query: key == "a"), "a_anywhere")


def a_latest() -> SOp:
    """Whether there is an `a`: by looking at the last of them."""
    return looking(SelectBest(tokens, tokens, lambda key, query: key == "a", indices), "a_latest")


def above_anywhere() -> SOp:
    """Whether some number is higher than the own one: by looking at all that are."""
    return looking(Select(tokens, tokens, Comparison.GT), "above_anywhere")


def above_at_most() -> SOp:
    """Whether some number is higher than the own one: by looking at the highest of them, the last of several."""
    return looking(SelectBest(tokens, tokens, Comparison.GT, tokens), "above_at_most")


def other_anywhere() -> SOp:
    """Whether some other token stands somewhere: by looking at all that are."""
    return looking(Select(tokens, tokens, Comparison.NEQ), "other_anywhere")


def other_first() -> SOp:
    """Whether some other token stands somewhere: by looking at the first of them."""
    earliness = Map(lambda i: -i, indices).named("earliness")
    return looking(SelectBest(tokens, tokens, Comparison.NEQ, earliness), "other_first")


CIRCUITS: tuple[Circuit, ...] = (
    of_program("elsewhere", "abc", elsewhere_exactly, elsewhere_and_here, family=SUPERSET),
    of_program("lower", range(4), lower_exactly, lower_and_equal, family=SUPERSET),
    of_program("earlier", "abc", earlier_exactly, earlier_and_here, family=SUPERSET),
    of_program("latest_a", "abcd", a_anywhere, a_latest, family=SUBSET),
    of_program("highest_above", range(4), above_anywhere, above_at_most, family=SUBSET),
    of_program("first_other", "abc", other_anywhere, other_first, family=SUBSET),
)
"""The circuits of these two families."""
