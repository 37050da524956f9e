"""Where programs look: at positions, and at tokens."""

from collections.abc import Callable

from rasplens.compile.rasp import Comparison, Select, Value, indices, tokens

EVERYWHERE = Select(indices, indices, Comparison.TRUE).named("everywhere")
ELSEWHERE = Select(indices, indices, Comparison.NEQ).named("elsewhere")
SO_FAR = Select(indices, indices, Comparison.LEQ).named("so_far")
EARLIER = Select(indices, indices, Comparison.LT).named("earlier")
LATER = Select(indices, indices, Comparison.GT).named("later")
ONE_BACK = Select(indices, indices, lambda key, query: key == query - 1).named("one_back")

SAME = Select(tokens, tokens, Comparison.EQ).named("same")
OTHER = Select(tokens, tokens, Comparison.NEQ).named("other")
LOWER = Select(tokens, tokens, Comparison.LT).named("lower")
LOWER_OR_EQUAL = Select(tokens, tokens, Comparison.LEQ).named("lower_or_equal")
HIGHER = Select(tokens, tokens, Comparison.GT).named("higher")

Place = Callable[[int], int]
"""From a position, the one that it looks at."""


def at(place: Place) -> Select:
    """The position that each position looks at."""
    return Select(indices, indices, lambda key, query: key == place(query))


def holds(token: Value) -> Select:
    """The positions of one token."""
    return Select(tokens, tokens, lambda key, query: key == token).named(f"holds_{token}")


def always(place: int) -> Place:
    """One position, from everywhere."""
    return lambda i: place


def before(steps: int, length: int) -> Place:
    """So many positions before, in a sequence that goes round."""
    return lambda i: (i - steps) % length


def backwards(length: int, further: int = 0) -> Place:
    """The position that mirrors this one, or so many behind it, in a sequence that goes round."""
    return lambda i: (length - 1 - i + further) % length
