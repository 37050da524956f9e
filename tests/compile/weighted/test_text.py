"""Weighted programs as text."""

import numpy as np
from weighted_samples import reverse, two_steps

from rasplens.compile import rasp, weighted
from rasplens.compile.weighted import (
    Constant,
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
        "'sharp': 3.",
        "'votes': 5.",
    ]


def test_the_text_of_what_is_fitted_has_the_fitted_numbers():
    changed = with_numbers(reverse(), {"sharp": np.array([1.25])})
    assert "'sharp': 1.25" in weighted_text(changed).splitlines()


def test_every_number_and_every_kind_of_part_is_in_it():
    program = two_steps()
    text = weighted_text(program)
    for name in numbers_of(program):
        assert f"\n{name!r}: " in text
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


def test_s_ops_that_look_alike_have_names_of_their_own():
    """Two that are called alike read two others that are called alike; a number is called as the program is."""
    one, other = (rasp.Map(len, rasp.Map(f, rasp.indices).named("part")).named("program") for f in (str, repr))
    program = Vote(Votes(one, Keys(Number())) + Votes(other, Keys(Constant("part"))), (1, 2))
    lines = weighted_text(program).splitlines()
    assert lines[:4] == [
        "part_2 = Map(str, indices)",
        "program_2 = Map(len, part_2)",
        "part_3 = Map(repr, indices)",
        "program_3 = Map(len, part_3)",
    ]
    assert "Votes(program_2, " in weighted_text(program)
    assert "Votes(program_3, " in weighted_text(program)


def test_many_values_are_not_all_shown():
    program = Vote(Votes(rasp.tokens, Keys(Number())), tuple(range(100)))
    assert weighted_text(program) == "program = Vote(Votes(tokens, Keys(Number(1.0, 0.0))), (0, ..., 99))"
