"""The programs that trained models may implement: for each mechanism the natural ones, all with the same answers.

Three ways to answer recur. *Gathering* copies values from selected positions. *Looking* counts the keys that match
the query (`SelectorWidth`): what is carried is only how many. *Averaging* looks at nothing: it takes the mean of
every token's indicator over all that is visible, and a function of these means gives the answer.
"""

from collections.abc import Callable, Sequence
from functools import reduce

from rasplens.compile import rasp
from rasplens.compile.rasp import Comparison, Selector, SOp, Value

tokens, indices = rasp.tokens, rasp.indices
everywhere = rasp.Select(indices, indices, Comparison.TRUE).named("everywhere")
so_far = rasp.Select(indices, indices, Comparison.LEQ).named("so_far")
earlier = rasp.Select(indices, indices, Comparison.LT).named("earlier")
one_back = rasp.Select(indices, indices, lambda key, query: key == query - 1).named("one_back")
same = rasp.Select(tokens, tokens, Comparison.EQ).named("same")


def read_from(where: Callable[[int], int], values: SOp, name: str) -> SOp:
    """At each position, the value of the position that a function of the index says."""
    target = rasp.Map(where, indices).named(f"where_{name}")
    return rasp.Aggregate(rasp.Select(indices, target, Comparison.EQ).named(f"at_{name}"), values).named(name)


def reverse(length: int) -> SOp:
    """The sequence backwards, by position."""
    return read_from(lambda i: length - 1 - i, tokens, "reverse")


def reverse_by_relay(length: int) -> SOp:
    """The sequence backwards in two hops: every token first moves back by one, around the end."""
    following = read_from(lambda i: (i + 1) % length, tokens, "following")
    return read_from(lambda i: (length - 2 - i) % length, following, "reverse_by_relay")


def previous(length: int) -> SOp:
    """The token before, by position; at the first position the last token."""
    return read_from(lambda i: (i - 1) % length, tokens, "previous")


def previous_by_relay(length: int) -> SOp:
    """The token before in two hops: what follows the position two back."""
    following = read_from(lambda i: (i + 1) % length, tokens, "following")
    return read_from(lambda i: (i - 2) % length, following, "previous_by_relay")


def first() -> SOp:
    """The first token, everywhere."""
    return read_from(lambda i: 0, tokens, "first")


def first_by_relay(length: int) -> SOp:
    """The first token in two hops: every token first moves on by one."""
    before = read_from(lambda i: (i - 1) % length, tokens, "before")
    return read_from(lambda i: 1, before, "first_by_relay")


def last(length: int) -> SOp:
    """The last token, everywhere."""
    return read_from(lambda i: length - 1, tokens, "last")


def previous_equal_by_gathering() -> SOp:
    """Whether the token before equals mine: it is fetched, then compared."""
    before = rasp.Aggregate(one_back, tokens).named("before")
    return (before == tokens).named("previous_equal_by_gathering")


def previous_equal_by_looking() -> SOp:
    """Whether the token before equals mine: only an equal one is looked at."""
    hits = rasp.SelectorWidth((same & one_back).named("same_one_back")).named("hits")
    return (hits > 0).named("previous_equal_by_looking")


def duplicate_by_looking() -> SOp:
    """Whether my token has occurred before: earlier equal tokens are looked at."""
    hits = rasp.SelectorWidth((same & earlier).named("same_earlier")).named("hits")
    return (hits > 0).named("duplicate_by_looking")


def duplicate_by_averaging(vocab: Sequence[Value]) -> SOp:
    """Whether my token has occurred before: from the means of all tokens over what is earlier."""
    seen = {x: (_share(earlier, x) > 0).named(f"seen_{x}") for x in vocab}
    return _by_token(vocab, seen).named("duplicate_by_averaging")


def histogram_by_looking() -> SOp:
    """How often my token occurs: equal tokens are looked at."""
    return rasp.SelectorWidth(same).named("histogram_by_looking")


def histogram_by_averaging(vocab: Sequence[Value], length: int) -> SOp:
    """How often my token occurs, out of `length`: from the means of all tokens."""
    counts = {x: rasp.Map(_times(length), _share(everywhere, x)).named(f"count_{x}") for x in vocab}
    return _by_token(vocab, counts).named("histogram_by_averaging")


def induction() -> SOp:
    """The token behind the previous occurrence of my token: keys are the tokens before.

    Where there are several occurrences it has no value; the task never has them.
    """
    before = rasp.Aggregate(one_back, tokens).named("before")
    match = rasp.Select(before, tokens, Comparison.EQ).named("after_match")
    return rasp.causal(rasp.Aggregate(match, tokens).named("induction"))


def induction_by_pointer() -> SOp:
    """The token behind the previous occurrence of my token: first where that is, then the position behind."""
    index = rasp.Map(lambda i: i, indices).named("index")
    match = (same & earlier).named("same_earlier")
    pointer = rasp.Aggregate(match, index).named("pointer")
    behind = rasp.Select(indices, pointer, lambda key, query: key == query + 1).named("behind")
    return rasp.causal(rasp.Aggregate(behind, tokens).named("induction_by_pointer"))


def lookup_by_matching(key_of: Callable[[str], str], value_of: Callable[[str], Value]) -> SOp:
    """The value of the pair whose key is mine: that pair is selected."""
    is_pair = lambda token: len(token) == 2  # noqa: E731
    match = rasp.Select(tokens, tokens, lambda key, query: is_pair(key) and key_of(key) == key_of(query))
    values = rasp.Map(value_of, tokens).named("value")
    return rasp.Aggregate(match.named("same_key"), values).named("lookup_by_matching")


def lookup_by_averaging(pairs: Sequence[str], queries: Sequence[str]) -> SOp:
    """The value of the pair whose key is mine: from the means of all pairs."""
    present = {pair: (_share(everywhere, pair) > 0).named(f"has_{pair}") for pair in pairs}

    def value(query: str) -> SOp:
        mine = [pair for pair in pairs if pair[0] == query[0]]
        unknown: SOp = rasp.Full(mine[-1][1]).named(f"other_{query}")
        return reduce(
            lambda rest, pair: rasp.Where(present[pair], rasp.Full(pair[1]), rest), mine[:-1], unknown
        ).named(f"value_{query[0]}")

    by_query = {query: value(query) for query in queries}
    return _by_token(queries, by_query).named("lookup_by_averaging")


def sort_by_ranking() -> SOp:
    """Different tokens in ascending order: each counts the smaller ones, and positions fetch their rank."""
    smaller = rasp.Select(tokens, tokens, Comparison.LT).named("smaller")
    rank = rasp.SelectorWidth(smaller).named("rank")
    target = rasp.Select(rank, indices, Comparison.EQ).named("rank_is_index")
    return rasp.Aggregate(target, tokens).named("sort_by_ranking")


def sort_by_averaging(vocab: Sequence[int]) -> SOp:
    """Different tokens in ascending order: from the means of all tokens, each position reads off its own."""
    present = {x: (_share(everywhere, x) > 0).named(f"has_{x}") for x in vocab}
    rank: SOp = rasp.Full(0).named("rank_0")
    answer: SOp = rasp.Full(vocab[0])
    for x in vocab:
        is_mine = (rank == indices).named(f"rank_{x}_is_mine")
        answer = rasp.Where((present[x] & is_mine).named(f"mine_{x}"), rasp.Full(x), answer)
        rank = rasp.SequenceMap(lambda below, has: below + has, rank, present[x]).named(f"below_{x}")
    return answer.named("sort_by_averaging")


def next_larger() -> SOp:
    """The smallest number so far that is larger than mine: it is selected."""
    smallness = rasp.Map(lambda token: -token if isinstance(token, int) else None, tokens).named("smallness")
    closest = rasp.SelectBest(tokens, tokens, _is_larger, smallness).named("closest_larger")
    return rasp.causal(rasp.Aggregate(closest, tokens).named("next_larger"))


def next_larger_listed(size: int) -> SOp:
    """The smallest number larger than mine of the first `size`: it is selected."""
    listed = rasp.SequenceMap(lambda token, i: token if i < size else -1, tokens, indices).named("listed")
    smallness = rasp.Map(lambda token: -token, tokens).named("smallness")
    closest = rasp.SelectBest(listed, tokens, Comparison.GT, smallness).named("closest_listed")
    return rasp.Aggregate(closest, tokens).named("next_larger_listed")


def next_larger_listed_by_averaging(numbers: Sequence[int], size: int) -> SOp:
    """The smallest number larger than mine of the first `size`: from the means of their tokens."""
    head = rasp.Select(indices, indices, lambda key, query: key < size).named("head")
    present = {x: (_share(head, x) > 0).named(f"has_{x}") for x in numbers}

    def above(mine: int) -> SOp:
        larger = [x for x in numbers if x > mine]
        return reduce(
            lambda rest, x: rasp.Where(present[x], rasp.Full(x), rest), reversed(larger), rasp.Full(numbers[-1])
        )

    return _by_token(numbers, {x: above(x) for x in numbers}).named("next_larger_listed_by_averaging")


def next_larger_by_averaging(numbers: Sequence[int], marker: str) -> SOp:
    """The smallest number so far that is larger than mine: from the means of all tokens so far."""
    present = {x: (_share(so_far, x) > 0).named(f"has_{x}") for x in numbers}

    def above(mine: Value) -> SOp:
        larger = [x for x in numbers if mine == marker or x > mine]
        return reduce(
            lambda rest, x: rasp.Where(present[x], rasp.Full(x), rest), reversed(larger), rasp.Full(numbers[-1])
        )

    known = (*numbers, marker)
    return rasp.causal(_by_token(known, {x: above(x) for x in known}).named("next_larger_by_averaging"))


def majority_by_averaging() -> SOp:
    """Whether more than half of the tokens are `a`: from their mean."""
    return (_share(everywhere, "a") > 0.5).named("majority_by_averaging")


def majority_by_looking(length: int) -> SOp:
    """Whether more than half of `length` tokens are `a`: they are looked at and counted."""
    is_a = rasp.Select(tokens, tokens, lambda key, query: key == "a").named("is_a")
    return (rasp.SelectorWidth(is_a).named("hits") > length // 2).named("majority_by_looking")


def depth_by_averaging() -> SOp:
    """How many brackets are open: the mean of +1 and -1 so far, times how many there are."""
    sign = rasp.numerical(rasp.Map(lambda token: 1 if token == "(" else -1, tokens).named("sign"))
    mean = rasp.numerical(rasp.Aggregate(so_far, sign).named("mean_sign"))
    return rasp.SequenceMap(lambda m, i: round(m * (i + 1)), mean, indices).named("depth_by_averaging")


def depth_by_looking() -> SOp:
    """How many brackets are open: the opening and the closing ones are looked at and counted."""
    opening = rasp.Select(tokens, tokens, lambda key, query: key == "(").named("opening")
    closing = rasp.Select(tokens, tokens, lambda key, query: key == ")").named("closing")
    opened = rasp.SelectorWidth((opening & so_far).named("opening_so_far")).named("opened")
    closed = rasp.SelectorWidth((closing & so_far).named("closing_so_far")).named("closed")
    return rasp.causal((opened - closed).named("depth_by_looking"))


def palindrome_by_gathering(length: int) -> SOp:
    """Whether the sequence is a palindrome: each token fetches its opposite; then all must be equal."""
    opposite = read_from(lambda i: length - 1 - i, tokens, "opposite")
    return _everywhere_true((opposite == tokens).named("is_equal"), "palindrome_by_gathering")


def palindrome_by_looking(length: int) -> SOp:
    """Whether the sequence is a palindrome: each token looks for an equal opposite; then all must have one."""
    mirrored = rasp.Map(lambda i: length - 1 - i, indices).named("mirrored")
    facing = rasp.Select(indices, mirrored, Comparison.EQ).named("facing")
    hits = rasp.SelectorWidth((same & facing).named("same_facing")).named("hits")
    return _everywhere_true((hits > 0).named("is_equal"), "palindrome_by_looking")


def palindrome_so_far_by_gathering(length: int) -> SOp:
    """Whether the first `length` tokens are a palindrome, from the past: the second half fetches its opposites."""
    opposite = read_from(lambda i: length - 1 - i, tokens, "opposite")
    return _second_half_true((opposite == tokens).named("is_equal"), length, "palindrome_so_far_by_gathering")


def palindrome_so_far_by_looking(length: int) -> SOp:
    """Whether the first `length` tokens are a palindrome, from the past: the second half looks for its equals."""
    mirrored = rasp.Map(lambda i: length - 1 - i, indices).named("mirrored")
    facing = rasp.Select(indices, mirrored, Comparison.EQ).named("facing")
    hits = rasp.SelectorWidth((same & facing).named("same_facing")).named("hits")
    return _second_half_true((hits > 0).named("is_equal"), length, "palindrome_so_far_by_looking")


def _second_half_true(condition: SOp, length: int, name: str) -> SOp:
    half = rasp.Select(indices, indices, lambda key, query: length // 2 <= key < length and query == length)
    share = rasp.numerical(
        rasp.Aggregate(half.named("second_half"), rasp.numerical(condition)).named("share_equal")
    )
    return rasp.causal((share == 1).named(name))


def _everywhere_true(condition: SOp, name: str) -> SOp:
    share = rasp.numerical(rasp.Aggregate(everywhere, rasp.numerical(condition)).named("share_equal"))
    return (share == 1).named(name)


def _share(selector: Selector, token: Value) -> SOp:
    """The share of a token among what is selected; 0 of nothing."""
    is_token = rasp.numerical((tokens == token).named(f"is_{token}"))
    return rasp.numerical(rasp.Aggregate(selector, is_token, default=0).named(f"share_{token}"))


def _by_token(vocab: Sequence[Value], values: dict[Value, SOp]) -> SOp:
    """The value that belongs to the token that stands here."""
    others = reversed(vocab[:-1])
    return reduce(lambda rest, x: rasp.Where(tokens == x, values[x], rest), others, values[vocab[-1]])


def _times(length: int) -> Callable[[float], int]:
    return lambda share: round(share * length)


def _is_larger(key: Value, query: Value) -> bool:
    return isinstance(key, int) and (not isinstance(query, int) or key > query)
