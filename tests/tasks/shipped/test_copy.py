import numpy as np

from rasplens.compile import compile_program
from rasplens.tasks import get_task


def test_the_published_layout():
    task = get_task("copy")
    assert (task.n_ctx, len(task.vocab), len(task.outputs)) == (24, 26, 26)
    assert task.loss_positions == tuple(range(5, 23))
    assert "".join(task.vocab) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def test_every_input_repeats_its_block_and_letters_may_repeat():
    task = get_task("copy")
    ids = task.draw(np.random.default_rng(0), 500)
    np.testing.assert_array_equal(ids[:, :18], ids[:, 6:])
    np.testing.assert_array_equal(task.target(ids), ids[:, 6:])
    assert any(len(set(row[:6])) < 6 for row in ids.tolist())


def test_a_block_is_held_out_as_a_whole():
    task = get_task("copy")
    ids = task.draw(np.random.default_rng(0), 100)
    np.testing.assert_array_equal(task.is_held_out(ids), task.is_held_out(ids[:, :6]))


def test_by_position_the_task_is_solved_by_content_only_where_letters_are_distinct():
    task = get_task("copy")
    ids = task.held_out[:200]
    offset, induction = (
        compile_program(task.programs[name], task.vocab, task.n_ctx, mask=task.visible)
        for name in ("offset", "induction")
    )
    assert task.accuracy(offset, ids) == (1, 1)
    distinct = ids[[len(set(row[:6])) == 6 for row in ids.tolist()]]
    token = task.accuracy(induction, distinct).token
    assert token == 17 / 18  # the first answer is due before any letter has come twice
    assert task.accuracy(induction, ids).token < token
