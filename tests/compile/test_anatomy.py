import numpy as np
import pytest
from rasp_examples import EQUAL, HIST

from rasplens.compile import compile_program
from rasplens.compile.anatomy import Anatomy
from rasplens.compile.rasp import Aggregate, numerical, tokens


@pytest.fixture(scope="module")
def counting() -> Anatomy:
    return compile_program(HIST, "ab", 4, pad=True)


def test_token_ids_stand_behind_a_bos_and_before_padding(counting):
    np.testing.assert_array_equal(counting.encode(["ab", "b"]), [[2, 0, 1], [2, 1, 3]])
    np.testing.assert_array_equal(counting.with_bos(np.array([[0, 1]])), [[2, 0, 1]])
    assert counting.offset == 1


def test_without_a_bos_ids_stay(counting):
    plain = compile_program(tokens, "ab", 4)
    np.testing.assert_array_equal(plain.with_bos(np.array([[0, 1]])), [[0, 1]])
    assert plain.offset == 0


def test_a_trace_reads_every_variable_at_every_position(counting):
    codes = counting.codes(np.array([[0, 0, 1]]))
    assert set(codes) == set(counting.variables)
    width = counting.variables["hist"]
    assert [width.values[code] for code in codes["hist"][0]] == [2, 2, 1]


def test_of_many_values_that_are_averaged_one_must_show():
    """The share of one in `max_len` is less than what a number may be off by."""
    long, short = (compile_program(Aggregate(EQUAL, tokens), "ab", n) for n in (10, 1))
    assert long.tolerance(long.variables["tokens"]) == 0.05
    assert short.tolerance(short.variables["tokens"]) == 0.25
    number = compile_program(numerical(tokens), [0, 1], 10)
    assert number.tolerance(number.variables[number.output]) == 0.25
