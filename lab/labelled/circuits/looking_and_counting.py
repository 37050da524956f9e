"""Whether something is there: by looking for it, or by counting how often."""

from collections.abc import Callable

from lab.labelled.circuits.circuit import Circuit, of_program
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    Selector,
    SelectorWidth,
    SOp,
    indices,
    tokens,
)

FAMILY = "looking against counting"


def looking(where: Selector, name: str) -> SOp:
    """Whether a selector finds anything: by what it gathers there."""
    found = Aggregate(where, Map(lambda t: 1, tokens), default=0).named(f"{name}_found")
    return Map(lambda n: n == 1, found).named(name)


def counting(where: Selector, name: str) -> SOp:
    """Whether a selector finds anything: by how much it selects."""
    return Map(lambda n: n > 0, SelectorWidth(where).named(f"{name}_width")).named(name)


def _an_a() -> Selector:
    return Select(tokens, tokens, lambda key, query: key == "a")


def _own_before() -> Selector:
    return Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, Comparison.LT)


def _own_after() -> Selector:
    return Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, Comparison.GT)


def _larger() -> Selector:
    return Select(tokens, tokens, Comparison.GT)


def _circuit(name: str, vocab: str | range, where: Callable[[], Selector]) -> Circuit:
    return of_program(
        name,
        vocab,
        lambda: looking(where(), f"{name}_by_looking"),
        lambda: counting(where(), f"{name}_by_counting"),
        family=FAMILY,
    )


CIRCUITS: tuple[Circuit, ...] = (
    _circuit("any", "abcd", _an_a),
    _circuit("seen_before", "abcd", _own_before),
    _circuit("seen_after", "abc", _own_after),
    _circuit("exceeded", range(4), _larger),
)
"""The circuits of this family."""
