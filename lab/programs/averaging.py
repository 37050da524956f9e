"""Programs that look at nothing: they average over all that is visible, or over what came so far."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from lab.programs.selectors import EARLIER, EVERYWHERE, SO_FAR
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Full,
    Map,
    Select,
    Selector,
    SequenceMap,
    SOp,
    Value,
    Where,
    causal,
    indices,
    numerical,
    tokens,
)

T = TypeVar("T", bound=Value)


def mean(of: SOp, name: str, over: Selector | None = None, default: Value = 0) -> SOp:
    """The mean of numbers over what is selected; over everything by a selector that no other mean shares."""
    over = Select(tokens, tokens, Comparison.TRUE) if over is None else over
    return numerical(Aggregate(over, numerical(of), default=default)).named(name)


def total_so_far(of: SOp, average: str, name: str) -> SOp:
    """The sum of numbers so far: their mean, in a variable `average`, times how many positions that are."""
    so_far = mean(of, average, SO_FAR)
    return SequenceMap(lambda x, i: round(x * (i + 1)), so_far, indices).named(name)


def total(share: SOp, length: int, name: str) -> SOp:
    """How many of `length` tokens a share stands for."""
    return Map(lambda x: round(length * x), share).named(name)


def sign(plus: Value, minus: Value) -> SOp:
    """1 for a token, -1 for another, 0 for all others."""
    return Map(lambda token: (token == plus) - (token == minus), tokens).named("sign")


def own_by_mean() -> SOp:
    """How often the own token occurs among 7 tokens of two kinds: by the mean of one kind."""
    share = mean(tokens == "a", "share_of_as")
    return SequenceMap(lambda t, x: round(7 * (x if t == "a" else 1 - x)), tokens, share).named("own_by_mean")


def share_of_rest() -> SOp:
    """The share of `a`: 1 less the share of all others."""
    return numerical(1 - mean(tokens != "a", "rest")).named("share_of_rest")


def more_by_difference() -> SOp:
    """Whether there are more `a`s than `b`s: by one mean, in which they count against each other."""
    return (mean(sign("a", "b"), "difference") > 0.01).named("more_by_difference")


def more_by_both() -> SOp:
    """Whether there are more `a`s than `b`s: by two means."""
    both = mean(tokens == "a", "share_of_a"), mean(tokens == "b", "share_of_b")
    return SequenceMap(lambda x, y: x > y + 0.01, *both).named("more_by_both")


def sum_by_total() -> SOp:
    """The sum of 4 numbers 0 to 2, modulo 3: by their mean."""
    return Map(lambda x: round(4 * x) % 3, mean(tokens, "mean_number")).named("sum_by_total")


def sum_by_kinds() -> SOp:
    """The sum of 4 numbers 0 to 2, modulo 3: by how many 1s there are, and how many 2s."""
    both = mean(tokens == 1, "share_of_1"), mean(tokens == 2, "share_of_2")
    return SequenceMap(lambda x, y: round(4 * x + 8 * y) % 3, *both).named("sum_by_kinds")


def majority_by_averaging() -> SOp:
    """Whether more than half of the tokens are `a`: from their mean."""
    return (_share("a") > 0.5).named("majority_by_averaging")


def duplicate_by_averaging(vocab: Sequence[Value]) -> SOp:
    """Whether my token has occurred before: from the means of all tokens over what is earlier."""
    return _by_token(vocab, lambda x: _is_among(x, EARLIER, "seen")).named("duplicate_by_averaging")


def histogram_by_averaging(vocab: Sequence[Value], length: int) -> SOp:
    """How often my token occurs, out of `length`: from the means of all tokens."""
    return _by_token(vocab, lambda x: total(_share(x), length, f"count_{x}")).named("histogram_by_averaging")


def lookup_by_averaging(pairs: Sequence[str], queries: Sequence[str]) -> SOp:
    """The value of the pair whose key is mine: from the means of all pairs."""
    present = {pair: _is_among(pair) for pair in pairs}

    def value(query: str) -> SOp:
        *mine, other = [pair for pair in pairs if pair[0] == query[0]]
        options = ((present[pair], Full(pair[1])) for pair in mine)
        return _chosen(Full(other[1]).named(f"other_{query}"), *options).named(f"value_{query[0]}")

    return _by_token(queries, value).named("lookup_by_averaging")


def sort_by_averaging(vocab: Sequence[int]) -> SOp:
    """Different tokens in ascending order: from the means of all tokens, each position reads off its own."""
    present = {x: _is_among(x) for x in vocab}
    rank: SOp = Full(0).named("rank_0")
    answer: SOp = Full(vocab[0])
    for x in vocab:
        is_mine = (rank == indices).named(f"rank_{x}_is_mine")
        answer = Where((present[x] & is_mine).named(f"mine_{x}"), Full(x), answer)
        rank = SequenceMap(lambda below, has: below + has, rank, present[x]).named(f"below_{x}")
    return answer.named("sort_by_averaging")


def next_larger_listed_by_averaging(numbers: Sequence[int], size: int) -> SOp:
    """The smallest number larger than mine of the first `size`: from the means of their tokens."""
    head = Select(indices, indices, lambda key, query: key < size).named("head")
    return _next_larger(numbers, numbers, head).named("next_larger_listed_by_averaging")


def next_larger_by_averaging(numbers: Sequence[int], marker: str) -> SOp:
    """The smallest number so far that is larger than mine: from the means of all tokens so far."""
    return causal(_next_larger(numbers, (*numbers, marker), SO_FAR).named("next_larger_by_averaging"))


def _next_larger(numbers: Sequence[int], known: Sequence[Value], over: Selector) -> SOp:
    """The smallest of some numbers that is among what is selected and above mine; above a marker all are."""
    present = {x: _is_among(x, over) for x in numbers}

    def above(mine: Value) -> SOp:
        larger = [x for x in numbers if not isinstance(mine, int) or x > mine]
        return _chosen(Full(numbers[-1]), *((present[x], Full(x)) for x in reversed(larger)))

    return _by_token(known, above)


def _share(token: Value, over: Selector = EVERYWHERE) -> SOp:
    """The share of a token among what is selected; 0 of nothing."""
    return mean((tokens == token).named(f"is_{token}"), f"share_{token}", over)


def _is_among(token: Value, over: Selector = EVERYWHERE, name: str = "has") -> SOp:
    return (_share(token, over) > 0).named(f"{name}_{token}")


def _by_token(vocab: Sequence[T], value_of: Callable[[T], SOp]) -> SOp:
    """The value that belongs to the token that stands here."""
    *others, last = vocab
    return _chosen(value_of(last), *((tokens == x, value_of(x)) for x in reversed(others)))


def _chosen(otherwise: SOp, *options: tuple[SOp, SOp]) -> SOp:
    """Of pairs of a condition and a value, the value of the last whose condition is true."""
    chosen = otherwise
    for condition, value in options:
        chosen = Where(condition, value, chosen)
    return chosen
