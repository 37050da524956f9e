"""Programs that sort."""

from rasplens.compile.rasp.language import (
    Aggregate,
    Comparison,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SOp,
    Value,
    Where,
    causal,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.programs.described import described


@described
def sort_unique(values: SOp = tokens, keys: SOp = tokens) -> SOp:
    """The values in the order of their keys, which are all different.

    Where a key occurs twice with different values, the program has no value.

    Not causal-safe: where a token goes depends on all the others.

    Example:
        >>> sort_unique()([3, 1, 2])
        [1, 2, 3]
    """
    smaller = Select(keys, keys, Comparison.LT).named("smaller")
    target = SelectorWidth(smaller).named("target_pos")
    return Aggregate(Select(target, indices, Comparison.EQ), values).named("sort_unique")


@described
def sort(values: SOp = tokens, keys: SOp = tokens) -> SOp:
    """The values in the order of their keys; values of equal keys stay in order.

    A token goes behind all smaller ones and behind the equal ones before it: two counts, added up.

    Not causal-safe: where a token goes depends on all the others.

    Example:
        >>> sort()([3, 1, 3, 2])
        [1, 2, 3, 3]
    """
    smaller = SelectorWidth(Select(keys, keys, Comparison.LT)).named("smaller")
    equal_before = Select(keys, keys, Comparison.EQ) & Select(indices, indices, Comparison.LT)
    target = (smaller + SelectorWidth(equal_before).named("equal_before")).named("target_pos")
    return Aggregate(Select(target, indices, Comparison.EQ), values).named("sort")


@described
def sort_by_frequency() -> SOp:
    """The tokens with the most frequent first; equally frequent ones stay in order.

    Not causal-safe: where a token goes depends on all the others.

    Example:
        >>> sort_by_frequency()("abbcb")
        ['b', 'b', 'b', 'a', 'c']
    """
    histogram = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("histogram")
    return sort(tokens, (-1 * histogram).named("rareness")).named("sort_by_frequency")


@described
def successor(length: int) -> SOp:
    """Writes out a list in ascending order, one token at a time.

    The sequence is a start token, `length` integers, a token that ends the list, and what has been
    written so far. At the end token and after, the program says what comes next: the current integer
    again if the list has copies of it that are not written yet, else the smallest larger one.

    The copies are counted without telling list and output apart: an integer that stands m times in the
    list and n times in the output is seen m + n times, so m - n copies are left where that exceeds 2n.

    Causal-safe: it was written for models that see only the past.

    Example:
        >>> from rasplens.compile import run
        >>> run(successor(3), ["BOS", 7, 4, 7, "MID", 4, 7], causal=True)[4:]
        [4, 7, 7]
    """
    end = length + 1
    same = Select(tokens, tokens, lambda key, query: is_integer(key) and key == query).named("same")
    written = Select(indices, indices, lambda key, query: key > end).named("written")
    seen = numerical(SelectorWidth(same)).named("seen")
    placed = numerical(SelectorWidth(same & written)).named("placed")
    left = numerical(LinearSequenceMap(seen, placed, 1, -2)).named("left")

    smallness = Map(lambda token: -token if is_integer(token) else None, tokens).named("smallness")
    next_larger = SelectBest(tokens, tokens, _is_larger, smallness).named("next_larger")
    following = Aggregate(next_larger, tokens).named("following")
    return causal(Where((left > 0).named("has_copies_left"), tokens, following)).named("successor")


@described
def next_larger() -> SOp:
    """The smallest integer of the sequence that is larger than the one that stands here.

    After a start token it is the smallest of all. As a way to write out a list in ascending order it is right as
    long as no integer occurs twice; where none is larger, it is undefined.

    Causal-safe in causal mode only: otherwise the integer may lie in the future.

    Example:
        >>> from rasplens.compile import run
        >>> run(next_larger(), ["BOS", 7, 4, 9, "MID", 4, 7], causal=True)[4:]
        [4, 7, 9]
    """
    smallness = Map(lambda token: -token if is_integer(token) else None, tokens).named("smallness")
    closest = SelectBest(tokens, tokens, _is_larger, smallness).named("closest_larger")
    return causal(Aggregate(closest, tokens)).named("next_larger")


def is_integer(token: Value) -> bool:
    """Whether a token is an element of the list, and no marker."""
    return isinstance(token, int)


def _is_larger(key: Value, query: Value) -> bool:
    """Whether the key is an integer above the query's; every integer is above a marker."""
    return is_integer(key) and (not is_integer(query) or key > query)
