"""Small weighted programs: reverse, one that mixes mixtures, and random numbers for them."""

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.weighted import (
    Constant,
    Difference,
    Each,
    Keys,
    Mix,
    Only,
    Pairs,
    Polynomial,
    Queries,
    Times,
    Vote,
    Votes,
    Weigh,
    When,
    numbers_of,
    with_numbers,
)

LETTERS = ("a", "b", "c")
N = 4


def same(name="votes", size=5.0):
    """A value votes for itself."""
    return When(lambda u, v: u == v, Keys(Constant(name, size)))


def reverse(sharp=8.0, most=N):
    """Each position weighs the one that mirrors it, but for the last ones if there is a limit."""
    mirrors = When(lambda k, q: k == N - 1 - q and q < most, Keys(Constant("sharp", sharp)))
    scores = Weigh(rasp.indices, rasp.indices, mirrors)
    return Vote(Votes(Mix(scores, rasp.tokens), same()), LETTERS)


def two_steps():
    """Every kind of score and vote, in two layers."""
    size = Each("size", LETTERS, (0.5, -1.0, 2.0))
    first = Weigh(
        rasp.tokens, rasp.indices, Times(Keys(size), Queries(Polynomial("rise", Each("i", range(N)), (1.0, 0.5))))
    )
    first = first + Weigh(
        rasp.indices, rasp.indices, Difference("near", (-3, -1, 0, 1, 3), (0.0, 1.0, 2.0, 1.0, 0.0))
    )
    first = first + Weigh(rasp.indices, rasp.indices, Only(lambda k, q: k != 1))
    mixed = Mix(first, rasp.tokens)
    second = Weigh(mixed, rasp.tokens, Pairs("pairs", LETTERS, LETTERS))
    second = second + Weigh(mixed, mixed, same("alike", 0.7))
    counted = Votes(Mix(second, mixed), same()) + Votes(rasp.tokens, same("own", -1.0))
    counted = counted + Votes(Mix(second, rasp.indices), Pairs("places", tuple(range(N)), LETTERS))
    return Vote(counted, LETTERS)


def with_noise(program, seed=0):
    """The program with other numbers."""
    rng = np.random.default_rng(seed)
    return with_numbers(
        program, {name: one + rng.normal(size=one.shape) for name, one in numbers_of(program).items()}
    )
