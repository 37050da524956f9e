"""A compiled model and the task that it is for."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import compare
from rasplens.compile import CompileError, UndefinedValue, programs, verify
from rasplens.compile.rasp import Aggregate, Select, indices, tokens
from rasplens.errors import RaspLensError
from rasplens.tasks import build_task, compile_for, task_from_program
from rasplens.tasks.compiling import check_compiled_for
from rasplens.tasks.task import NO_ANSWER


@pytest.fixture(scope="module")
def task():
    return task_from_program(programs.induction(), "abc", 4, causal=True)


def test_the_compiled_model_of_a_task_s_own_program_is_one_of_the_task(task):
    check_compiled_for(compile_for(task), task)
    check_compiled_for(compile_for(task, optimize=False), task)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (task_from_program(programs.induction(), "abd", 4, causal=True), " 4 .* a, b, d"),
        (task_from_program(programs.induction(), "cab", 4, causal=True), " 4 .* c, a, b"),
        (task_from_program(programs.induction(), "abc", 5, causal=True), " 5 .* a, b, c;.* 4 .* a, b, c"),
        (task_from_program(programs.induction(), "abc", 4), "mask of 'induction'.*'induction'"),
        (task_from_program(programs.histogram(), "abc", 4, causal=True), r" 0\.\d+ of the answers"),
    ],
)
def test_that_of_another_is_not(task, other, message):
    with pytest.raises(RaspLensError, match=message):
        check_compiled_for(compile_for(other), task)


def test_answers_that_the_program_gets_wrong_are_told(task):
    wrong = replace(task, target=lambda ids: 1 - task.target(ids).clip(0, 1))
    with pytest.raises(RaspLensError, match=r" 0\.\d+ of the answers of 'induction'"):
        check_compiled_for(compile_for(task), wrong)


MIXED_AT_FIRST = Aggregate(
    Select(indices, indices, lambda key, query: key <= 1 if query < 2 else key == query - 1), tokens
).named("mixed_at_first")
"""The token before; where there is none, it mixes two."""


def read_at(read, answer):
    return build_task(
        "read_in_part", "{x:4}", tokens="abc", answers=answer, read=read, programs={"mixed": MIXED_AT_FIRST}
    )


@pytest.mark.slow
def test_a_program_is_right_that_is_undefined_where_no_answer_reads_it():
    task = read_at("last", lambda x: x[2])
    assert task.accuracy(MIXED_AT_FIRST) == (1, 1)
    compiled = compile_for(task)
    assert task.accuracy(compiled) == (1, 1)
    assert verify(compiled).ok
    with pytest.raises(UndefinedValue, match="mixed_at_first"):
        compiled("abca")
    assert compare(compiled, compiled, task=task, config="quick").verdict.answer == "implements"


def test_a_program_that_is_undefined_where_an_answer_is_read_is_refused():
    task = read_at(["x2", "x4"], lambda x: [x[0], x[2]])
    assert task.accuracy(MIXED_AT_FIRST).sequence < 1
    assert (task.answers(MIXED_AT_FIRST, np.array([[0, 1, 2, 0]])) == [[NO_ANSWER, 2]]).all()
    with pytest.raises(CompileError, match="mixed_at_first"):
        compile_for(task)
