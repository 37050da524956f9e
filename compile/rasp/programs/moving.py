"""Programs that move tokens to other positions, or combine what stands there."""

from collections.abc import Callable, Sequence
from functools import reduce

from rasplens.compile.rasp.language import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    Value,
    indices,
    tokens,
)
from rasplens.compile.rasp.programs.described import described


@described
def reverse(sop: SOp = tokens) -> SOp:
    """The sequence backwards.

    Not causal-safe: the first position would have to see the last.

    Example:
        >>> reverse()("abc")
        ['c', 'b', 'a']
    """
    length = SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).named("length")
    opposite = (length - indices - 1).named("opposite")
    return Aggregate(Select(indices, opposite, Comparison.EQ), sop).named("reverse")


@described
def shift_by(offset: int, sop: SOp = tokens) -> SOp:
    """The sequence moved `offset` positions on; undefined where nothing moves to.

    Causal-safe for offsets of 0 and more.

    Example:
        >>> shift_by(1)("abc")
        [None, 'a', 'b']
        >>> shift_by(-1)("abc")
        ['b', 'c', None]
    """
    back = Select(indices, indices, lambda key, query: query == key + offset).named(f"{offset}_back")
    return Aggregate(back, sop).named(f"shift_by_{offset}")


@described
def detect_pattern(pattern: Sequence[Value]) -> SOp:
    """Whether a pattern ends here; undefined where it would begin before the sequence.

    Causal-safe.

    Example:
        >>> detect_pattern("ab")("cabab")
        [None, False, True, False, True]
    """
    last = len(pattern) - 1
    found = [shift_by(last - i, (tokens == token).named(f"is_{token}")) for i, token in enumerate(pattern[:-1])]
    return reduce(lambda x, y: x & y, [*found, tokens == pattern[last]]).named("detect_pattern")


@described
def nary_map(function: Callable[..., Value], *sops: SOp) -> SOp:
    """A function of any number of s-ops, position by position.

    Causal-safe.

    Example:
        >>> nary_map(lambda x, y, z: x + y - z, tokens, shift_by(1), indices)([5, 6, 7])
        [None, 10, 11]
    """
    gathered: SOp = Map(lambda value: (value,), sops[0])
    for sop in sops[1:]:
        gathered = SequenceMap(lambda values, value: (*values, value), gathered, sop)
    return Map(lambda values: function(*values), gathered).named("nary_map")
