"""The induction task: what followed a letter before."""

import numpy as np
import pytest

from rasplens.compile import run
from rasplens.tasks import get_task


def test_the_answers_are_the_letters_that_followed():
    task = get_task("induction", n_letters=6, block=4, asked=2)
    ids = np.array([[3, 0, 5, 1, 0, 3], [2, 4, 1, 0, 1, 2]])
    np.testing.assert_array_equal(task.target(ids), [[5, 0], [0, 4]])


def test_letters_of_a_block_differ_and_every_question_has_one_answer():
    task = get_task("induction")
    for ids in (task.held_out, task.sample(np.random.default_rng(0), 500)):
        block, asked = ids[:, :8], ids[:, 8:]
        assert all(len(set(row)) == 8 for row in block.tolist())
        assert all(len(set(row)) == 4 for row in asked.tolist())
        places = (block[:, None, :] == asked[:, :, None]).argmax(axis=2)
        assert (places < 7).all()
        offsets = np.arange(8, 12) - places
        assert all(len(np.unique(offsets[:, i])) > 4 for i in range(4))  # no rule by position


def test_the_program_says_what_the_task_asks():
    task = get_task("induction")
    program = task.programs["induction"]
    for row, answers in zip(task.held_out[:50], task.target(task.held_out[:50]), strict=True):
        said = run(program, [task.vocab[i] for i in row], causal=True)
        assert said[8:] == [task.outputs[i] for i in answers]


@pytest.mark.parametrize("sizes", [{"asked": 8}, {"block": 13}, {"n_letters": 27, "block": 9}])
def test_sizes_that_make_no_task_are_refused(sizes):
    with pytest.raises(ValueError, match="asked < block <= n_letters <= 26"):
        get_task("induction", **sizes)
