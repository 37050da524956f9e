"""How programs that move tokens go together; what each says alone stands in test_library.py."""

import itertools

import pytest

from rasplens.compile import compile_program, run, verify
from rasplens.compile.rasp import indices, tokens
from rasplens.compile.rasp.programs.moving import detect_pattern, nary_map, reverse, shift_by

SHORT = [list(s) for n in range(1, 5) for s in itertools.product("ab", repeat=n)]


def test_backwards_twice_is_forwards():
    for sequence in SHORT:
        assert run(reverse(reverse()), sequence) == sequence


def test_two_shifts_are_one_and_there_and_back_loses_the_ends():
    for sequence in SHORT:
        assert run(shift_by(1, shift_by(2)), sequence) == run(shift_by(3), sequence)
        assert run(shift_by(-1, shift_by(1)), sequence) == [*sequence[:-1], None]


def test_a_pattern_is_seen_wherever_it_ends():
    for sequence in SHORT:
        found = run(detect_pattern("aba"), sequence)
        assert found == [
            None if i < 2 else sequence[i - 2 : i + 1] == ["a", "b", "a"] for i in range(len(sequence))
        ]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_map_of_any_number_of_arguments_gets_them_in_their_order(n):
    sops = (tokens, shift_by(1), indices)[:n]
    for sequence in SHORT:
        rows = zip(*(run(sop, sequence) for sop in sops), strict=True)
        expected = [None if None in row else "".join(map(str, row)) for row in rows]
        assert run(nary_map(lambda *values: "".join(map(str, values)), *sops), sequence) == expected


@pytest.mark.parametrize("program", [shift_by(2), detect_pattern("ab"), nary_map(max, tokens, shift_by(1))])
def test_what_looks_back_compiles_to_what_it_says_where_only_the_past_is_seen(program):
    found = verify(compile_program(program, "abc", 4, causal=True, partial="allow"))
    assert found.ok
    assert found.exhaustive
