"""Circuits that combine equal terms in different order, where what is half done is a variable."""

from collections.abc import Callable

from lab.labelled.circuits.circuit import Circuit, moved, of_program
from rasplens.compile.rasp import SequenceMap, SOp, Value, tokens

FAMILY = "order of association"

Operation = Callable[[Value, Value], Value]


def _term(steps: int, length: int = 5) -> SOp:
    return moved(tokens, lambda q: (q - steps) % length, f"{steps}_before")


def from_own(operation: Operation, name: str) -> SOp:
    """The own token with the one before it, then with the one before that."""
    first = SequenceMap(operation, tokens, _term(1)).named(f"{name}_of_first_two")
    return SequenceMap(operation, first, _term(2)).named(f"{name}_from_own")


def from_far(operation: Operation, name: str) -> SOp:
    """The two tokens before with each other, then with the own one."""
    last = SequenceMap(operation, _term(1), _term(2)).named(f"{name}_of_last_two")
    return SequenceMap(operation, tokens, last).named(f"{name}_from_far")


def _sum(x: Value, y: Value) -> Value:
    return (x + y) % 3


def _circuit(name: str, n: int, operation: Operation) -> Circuit:
    return of_program(
        name, range(n), lambda: from_own(operation, name), lambda: from_far(operation, name), family=FAMILY
    )


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


CIRCUITS: tuple[Circuit, ...] = (
    _circuit("sum_of_three", 3, _sum),
    _circuit("highest_of_three", 4, max),
    of_program("parity_of_four", range(2), parity_in_a_row, parity_by_halves, 7, FAMILY),
)
"""The circuits of this family."""
