"""Families of circuits whose programs do not answer alike everywhere: not on all inputs, or on no others."""

import itertools

import numpy as np

from lab.labelled.circuits.circuit import Circuit, family, of_program, on_inputs
from lab.programs.counting import count, count_and_add
from lab.programs.looking import unless_first_is
from lab.programs.moving import moved
from lab.programs.ordering import highest
from lab.programs.recalling import after_match, behind_a
from lab.programs.selectors import LOWER, LOWER_OR_EQUAL, OTHER, SAME, always, backwards, before
from rasplens.compile.rasp import SOp, tokens
from rasplens.tasks.task import Ids

N_INPUTS = 6**4
"""All inputs of a circuit that is right on part of them."""


def _mostly(name: str, vocab: str | range, program: SOp, otherwise: SOp, same: int) -> Circuit:
    """The program, and what says something else where the first token is the last of the vocabulary."""
    alternative = unless_first_is(vocab[-1], program, otherwise)
    return of_program(name, vocab, program, alternative, 4, same / N_INPUTS)


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


ON_SOME_INPUTS = (
    *family(
        "right only on part of the inputs",  # 5 / 6, and what agrees by chance
        _mostly("mostly_backwards", "abcdef", moved(tokens, backwards(4), "backwards_always"), tokens, 1086),
        _mostly("mostly_top", range(6), highest().named("top_always"), tokens, 1081),
        _mostly("mostly_match", "abcdef", count(SAME, "match_always"), count(OTHER, "others_always"), 1095),
    ),
    *family(
        "right only where inputs happen not to tell",
        on_inputs("behind", "abcde", moved(tokens, always(1), "behind_first"), behind_a(), _with_a_first),
        on_inputs(
            "end_or_highest",
            range(5),
            moved(tokens, always(5), "at_end"),
            highest().named("highest_of_all"),
            _in_order,
        ),
        on_inputs(
            "rank_of_different",
            range(6),
            count(LOWER_OR_EQUAL, "up_to_own"),
            count_and_add(LOWER, "below", 1, "below_own"),
            _all_different,
        ),
        on_inputs("next_in_period", "abcdef", moved(tokens, before(2, 6), "two_back"), after_match(), _twice),
    ),
)
"""The circuits of these families."""
