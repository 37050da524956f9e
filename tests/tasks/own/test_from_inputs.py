"""Tasks of a list of inputs."""

import numpy as np
import pytest

from rasplens.compile.rasp import Map, tokens
from rasplens.tasks import task_from_inputs

WORDS = [["a", "b"], ["b", "a"], ["a", "a"], ["b", "b"]]
NUMBERS = [[0, 1], [1, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize("rows", [WORDS, np.array(WORDS)], ids=["lists", "array"])
@pytest.mark.parametrize("answers", [NUMBERS, np.array(NUMBERS)], ids=["lists", "array"])
def test_numpy_values_are_the_values_that_they_stand_for(rows, answers):
    task = task_from_inputs("numbers", list(map(list, rows)), list(answers), held_out=[True, False, True, False])
    assert (task.outputs, task.vocab) == ((0, 1), ("a", "b"))
    assert [type(value) for value in (*task.outputs, *task.vocab)] == [int, int, str, str]
    assert task.accuracy(Map("ab".index, tokens)).token == 1.0
