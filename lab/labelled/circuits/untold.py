"""Rules by position and by content that agree on the task's own inputs, and on no others."""

import itertools

import numpy as np

from lab.labelled.circuits.circuit import Circuit, moved, on_inputs
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SOp,
    indices,
    tokens,
)
from rasplens.tasks.task import Ids

FAMILY = "right only where inputs happen not to tell"


def behind_first() -> SOp:
    """The token at position 1, everywhere."""
    return moved(tokens, lambda q: 1, "behind_first")


def behind_a() -> SOp:
    """The token behind the last `a`, everywhere: the same where the only `a` stands first."""
    before = moved(tokens, lambda q: max(q - 1, 0), "token_before")
    behind = SelectBest(before, tokens, lambda key, query: key == "a", indices)
    return Aggregate(behind, tokens, default="a").named("behind_a")


def at_end() -> SOp:
    """The last of 6 numbers, everywhere."""
    return moved(tokens, lambda q: 5, "at_end")


def highest_of_all() -> SOp:
    """The highest number: the same where they stand in order."""
    return Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, tokens), tokens).named("highest_of_all")


def up_to_own() -> SOp:
    """How many numbers are not higher than the own one."""
    return SelectorWidth(Select(tokens, tokens, Comparison.LEQ)).named("up_to_own")


def below_own() -> SOp:
    """How many are lower, and 1: the same where no two are equal."""
    below = SelectorWidth(Select(tokens, tokens, Comparison.LT)).named("below")
    return Map(lambda n: n + 1, below).named("below_own")


def two_back() -> SOp:
    """The token 2 positions before, in a sequence of 6 that goes round."""
    return moved(tokens, lambda q: (q - 2) % 6, "two_back")


def after_match() -> SOp:
    """The token behind the last place of the own one: the same where 3 different tokens stand twice in a row."""
    before = moved(tokens, lambda q: (q - 1) % 6, "one_before")
    return Aggregate(SelectBest(before, tokens, Comparison.EQ, indices), tokens).named("after_match")


def _with_a_first(rng: np.random.Generator, n: int) -> Ids:
    ids = rng.integers(1, 5, (n, 5))
    ids[:, 0] = 0
    return ids


def _in_order(rng: np.random.Generator, n: int) -> Ids:
    return np.sort(rng.integers(0, 5, (n, 6)), axis=1)


def _all_different(rng: np.random.Generator, n: int) -> Ids:
    orders = np.array(list(itertools.permutations(range(6), 4)))
    return orders[rng.integers(0, len(orders), n)]


def _twice(rng: np.random.Generator, n: int) -> Ids:
    orders = np.array(list(itertools.permutations(range(6), 3)))
    return np.tile(orders[rng.integers(0, len(orders), n)], 2)


CIRCUITS: tuple[Circuit, ...] = (
    on_inputs("behind", "abcde", behind_first, behind_a, _with_a_first, FAMILY),
    on_inputs("end_or_highest", range(5), at_end, highest_of_all, _in_order, FAMILY),
    on_inputs("rank_of_different", range(6), up_to_own, below_own, _all_different, FAMILY),
    on_inputs("next_in_period", "abcdef", two_back, after_match, _twice, FAMILY),
)
"""The circuits of this family."""
