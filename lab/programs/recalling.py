"""Programs that find a place by what stands there, or before it."""

from collections.abc import Callable

from lab.programs.counting import count
from lab.programs.moving import moved
from lab.programs.selectors import EARLIER, ONE_BACK, SAME, SO_FAR, before, holds
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectBest,
    SOp,
    Value,
    causal,
    indices,
    tokens,
)


def first_a_directly() -> SOp:
    """Where the first `a` stands; 5 if nowhere: the one that scores best by its place."""
    earliness = Map(lambda i: -i, indices).named("how_early")
    first = SelectBest(tokens, tokens, lambda key, query: key == "a", earliness)
    return Aggregate(first, indices, default=5).named("first_a_directly")


def first_a_by_counting() -> SOp:
    """Where the first `a` stands; 5 if nowhere: how many positions have no `a` up to them."""
    so_far = count(holds("a") & SO_FAR, "as_so_far")
    return count(Select(so_far, tokens, lambda key, query: key == 0), "first_a_by_counting")


def behind_a() -> SOp:
    """The token behind the last `a`, everywhere; `a` if there is none."""
    token_before = moved(tokens, lambda i: max(i - 1, 0), "token_before")
    behind = SelectBest(token_before, tokens, lambda key, query: key == "a", indices)
    return Aggregate(behind, tokens, default="a").named("behind_a")


def after_match() -> SOp:
    """The token behind the last place of the own one, among 6 that go round."""
    one_before = moved(tokens, before(1, 6), "one_before")
    return Aggregate(SelectBest(one_before, tokens, Comparison.EQ, indices), tokens).named("after_match")


def induction() -> SOp:
    """The token behind the previous occurrence of my token: keys are the tokens before.

    Where there are several occurrences it has no value.
    """
    match = Select(Aggregate(ONE_BACK, tokens).named("before"), tokens, Comparison.EQ).named("after_match")
    return causal(Aggregate(match, tokens).named("induction"))


def induction_by_pointer() -> SOp:
    """The token behind the previous occurrence of my token: first where that is, then the position behind."""
    pointer = Aggregate(SAME & EARLIER, Map(lambda i: i, indices).named("index")).named("pointer")
    behind = Select(indices, pointer, lambda key, query: key == query + 1).named("behind")
    return causal(Aggregate(behind, tokens).named("induction_by_pointer"))


def lookup_by_matching(key_of: Callable[[str], str], value_of: Callable[[str], Value]) -> SOp:
    """The value of the pair whose key is mine: that pair is selected."""
    match = Select(tokens, tokens, lambda key, query: len(key) == 2 and key_of(key) == key_of(query))
    values = Map(value_of, tokens).named("value")
    return Aggregate(match.named("same_key"), values).named("lookup_by_matching")
