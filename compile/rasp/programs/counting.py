"""Programs that count."""

from rasplens.compile.rasp.language import (
    Aggregate,
    Comparison,
    Select,
    SelectBest,
    SelectorWidth,
    SOp,
    Value,
    indices,
    tokens,
)
from rasplens.compile.rasp.programs.described import described


@described
def length() -> SOp:
    """The length of the sequence, at every position.

    Not causal-safe: in causal mode it is the number of tokens so far.

    Example:
        >>> length()("abc")
        [3, 3, 3]
    """
    return SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).named("length")


@described
def histogram() -> SOp:
    """How often each token occurs in the sequence.

    Not causal-safe: in causal mode it is how often it has occurred so far.

    Example:
        >>> histogram()("hello")
        [1, 1, 2, 2, 1]
    """
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("histogram")


@described
def histogram_nd(depth: int = 2) -> SOp:
    """How many different tokens are as frequent as this one: the histogram of the histogram, and so on.

    Depth 1 is the histogram itself, depth 2 the double histogram of Weiss et al. 2021, section 5; at each
    further depth, tokens are compared by what the depth before says of them. Equal tokens count once.

    Not causal-safe: in causal mode it counts with what has been seen so far.

    Example:
        >>> histogram_nd(2)("hello")
        [3, 3, 1, 1, 3]
    """
    counts = histogram()
    earlier = Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, Comparison.LT)
    is_first = (SelectorWidth(earlier) == 0).named("is_first")
    firsts = Select(is_first, is_first, lambda key, query: key)
    for level in range(2, depth + 1):
        counts = SelectorWidth(Select(counts, counts, Comparison.EQ) & firsts).named(f"histogram_{level}")
    return counts


@described
def count(token: Value) -> SOp:
    """How often one given token occurs in the sequence.

    Not causal-safe: in causal mode it is how often it has occurred so far.

    Example:
        >>> count("a")("banana")
        [3, 3, 3, 3, 3, 3]
    """
    return SelectorWidth(Select(tokens, tokens, lambda key, query: key == token)).named("count")


@described
def count_less_frequent(most: int) -> SOp:
    """At how many positions stands a token that occurs at most `most` times.

    Not causal-safe: in causal mode it counts those that had occurred so seldom when they stood there.

    Example:
        >>> count_less_frequent(2)("abbaab")
        [0, 0, 0, 0, 0, 0]
        >>> count_less_frequent(2)("abbba")
        [2, 2, 2, 2, 2]
    """
    counts = histogram()
    return SelectorWidth(Select(counts, counts, lambda key, query: key <= most)).named("count_less_frequent")


@described
def most_frequent() -> SOp:
    """The most frequent token of the sequence; of several, the one that comes first.

    Source: Weiss et al. 2021, section 5, "most-freq", for its first place.

    Not causal-safe: in causal mode it is the most frequent so far.

    Example:
        >>> most_frequent()("hello")
        ['l', 'l', 'l', 'l', 'l']
        >>> most_frequent()("abab")
        ['a', 'a', 'a', 'a']
    """
    counts = histogram()
    highest = Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, counts), counts).named("highest_count")
    first = SelectBest(counts, highest, Comparison.EQ, (-1 * indices).named("earliness")).named("first_of_highest")
    return Aggregate(first, tokens).named("most_frequent")
