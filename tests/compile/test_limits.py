import pytest

from rasplens.compile import CompileError, CompileLimits, compile_program
from rasplens.compile.rasp import indices, tokens


def test_they_are_passed_to_the_compiler():
    with pytest.raises(CompileError, match=r" 3 values.*max_values of CompileLimits"):
        compile_program(tokens + indices, [0, 10], 2, limits=CompileLimits(max_values=3))
    assert compile_program(tokens + indices, [0, 10], 2, limits=CompileLimits(max_values=4))([10, 0]) == [10, 1]


def test_none_is_negative():
    with pytest.raises(ValueError, match=r"executed_inputs.* 0 .*-1"):
        CompileLimits(executed_inputs=-1)


def test_a_number_is_no_limits():
    with pytest.raises(ValueError, match=r"CompileLimits.*int 5"):
        compile_program(tokens, ["a"], 2, limits=5)
