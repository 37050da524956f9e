"""Weighted programs as text."""

import numpy as np
from weighted_samples import reverse, two_steps

from rasplens.compile import rasp, weighted
from rasplens.compile.weighted import (
    Keys,
    Mix,
    Number,
    Vote,
    Votes,
    Weigh,
    numbers_of,
    weighted_text,
    with_numbers,
)


def test_a_program_is_said_with_its_numbers():
    sharp = "When(lambda k, q: k == N - 1 - q and q < 4, Keys(Constant('sharp')))"
    assert weighted_text(reverse(sharp=3.0)).splitlines() == [
        f"mix_1 = Mix(Weigh(indices, indices, {sharp}), tokens)",
        "program = Vote(Votes(mix_1, When(lambda u, v: u == v, Keys(Constant('votes')))), ('a', 'b', 'c'))",
        "",
        "sharp = 3.",
        "votes = 5.",
    ]


def test_the_text_of_what_is_fitted_has_the_fitted_numbers():
    changed = with_numbers(reverse(), {"sharp": np.array([1.25])})
    assert "sharp = 1.25" in weighted_text(changed).splitlines()


def test_every_number_and_every_kind_of_part_is_in_it():
    program = two_steps()
    text = weighted_text(program)
    for name in numbers_of(program):
        assert f"\n{name} = " in text
    for one in ("Mix", "Weigh", "Times", "Polynomial", "Difference", "Only", "Pairs", "Votes"):
        assert f"{one}(" in text


def test_a_text_of_named_functions_is_python_that_builds_the_program():
    near = Weigh(rasp.indices, rasp.tokens, Keys(Number(2.0)))
    as_number, as_word = (rasp.Map(f, rasp.indices) for f in (int, str))
    program = Vote(Votes(Mix(near + near, as_number), Keys(Number())) + Votes(as_word, Keys(Number())), (1, 2))
    lines = weighted_text(program)
    assert "map = Map(int, indices)" in lines
    assert "map_2 = Map(str, indices)" in lines
    said = {one: getattr(rasp, one) for one in ("Map", "indices", "tokens")}
    names = {**vars(weighted), **said}
    exec(lines, names)
    assert weighted_text(names["program"]) == lines


def test_many_values_are_not_all_shown():
    program = Vote(Votes(rasp.tokens, Keys(Number())), tuple(range(100)))
    assert weighted_text(program) == "program = Vote(Votes(tokens, Keys(Number(1.0, 0.0))), (0, ..., 99))"
