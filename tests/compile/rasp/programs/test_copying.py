import doctest

import pytest

from rasplens.compile import compile_program, run, verify
from rasplens.compile.rasp.programs import copying


def test_the_examples_in_the_docstrings():
    found = doctest.testmod(copying)
    assert found.attempted > 0
    assert found.failed == 0


def test_both_continue_a_block_without_repeated_letters():
    sequence = list("abcdefabcdefabcdef")
    for program in (copying.offset(6), copying.induction()):
        assert run(program, sequence, causal=True)[6:] == [*sequence[7:], "a"]


def test_they_part_where_a_letter_repeats_within_the_block():
    sequence = list("abacdeabacde")
    assert run(copying.offset(6), sequence, causal=True)[6] == "b"
    assert run(copying.induction(), sequence, causal=True)[6] == "c"


@pytest.mark.parametrize("program", [copying.offset(3), copying.induction()], ids=["offset", "induction"])
def test_compiled_they_equal_the_interpreter_on_every_input(program):
    found = verify(compile_program(program, ["a", "b", "c"], 6, causal=True))
    assert found.ok
    assert found.exhaustive
