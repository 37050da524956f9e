"""A compiled model and the task that it is for."""

from dataclasses import replace

import pytest

from rasplens.compile import programs
from rasplens.errors import RaspLensError
from rasplens.tasks import compile_for, task_from_program
from rasplens.tasks.compiling import check_compiled_for


@pytest.fixture(scope="module")
def task():
    return task_from_program(programs.induction(), "abc", 4, causal=True)


def test_the_compiled_model_of_a_task_s_own_program_is_one_of_the_task(task):
    check_compiled_for(compile_for(task), task)
    check_compiled_for(compile_for(task, optimize=False), task)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (task_from_program(programs.induction(), "abd", 4, causal=True), "compiled for 4 of the tokens a, b, d"),
        (task_from_program(programs.induction(), "cab", 4, causal=True), "in this order"),
        (task_from_program(programs.induction(), "abc", 5, causal=True), "have 4 of a, b, c, in this order"),
        (task_from_program(programs.induction(), "abc", 4), "Other positions see each other"),
        (task_from_program(programs.histogram(), "abc", 4, causal=True), "gives only 0.* of the answers"),
    ],
)
def test_that_of_another_is_not(task, other, message):
    with pytest.raises(RaspLensError, match=message):
        check_compiled_for(compile_for(other), task)


def test_answers_that_the_program_gets_wrong_are_told(task):
    wrong = replace(task, target=lambda ids: 1 - task.target(ids).clip(0, 1))
    with pytest.raises(RaspLensError, match=r"gives only 0\.\d+ of the answers of 'induction'"):
        check_compiled_for(compile_for(task), wrong)
