"""Programs that are right on most inputs only: where the first token is a certain one, they say something else."""

from collections.abc import Callable

from lab.labelled.circuits.circuit import Circuit, moved, of_program
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    SOp,
    Value,
    Where,
    tokens,
)

FAMILY = "right only on part of the inputs"


def unless_first_is(token: Value, program: SOp, otherwise: SOp) -> SOp:
    """A program, but something else where the first token is a certain one: of one in as many as there are."""
    first = moved(tokens, lambda q: 0, f"first_for_{program.name}")
    is_it = SequenceMap(lambda x, y: x == token, first, tokens).named(f"first_is_{token}")
    return Where(is_it, otherwise, program).named(f"{program.name}_but_once")


def backwards_always() -> SOp:
    """The sequence backwards."""
    return moved(tokens, lambda q: 3 - q, "backwards_always")


def top_always() -> SOp:
    """The highest number."""
    return Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, tokens), tokens).named("top_always")


def match_always() -> SOp:
    """How often the own token occurs."""
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("match_always")


def others_always() -> SOp:
    """How many positions hold other tokens."""
    return SelectorWidth(Select(tokens, tokens, Comparison.NEQ)).named("others_always")


def _circuit(
    name: str, vocab: str | range, program: Callable[[], SOp], otherwise: Callable[[], SOp], share: float
) -> Circuit:
    return of_program(
        name, vocab, program, lambda: unless_first_is(vocab[-1], program(), otherwise()), 4, FAMILY, share
    )


N_INPUTS = 6**4

CIRCUITS: tuple[Circuit, ...] = (
    _circuit("mostly_backwards", "abcdef", backwards_always, lambda: tokens, 1086 / N_INPUTS),
    _circuit("mostly_top", range(6), top_always, lambda: tokens, 1081 / N_INPUTS),
    _circuit("mostly_match", "abcdef", match_always, others_always, 1095 / N_INPUTS),
)
"""The circuits of this family: 5 / 6, and what agrees by chance."""
