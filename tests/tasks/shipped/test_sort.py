import numpy as np

from rasplens.tasks import get_task


def test_the_published_layout():
    task = get_task("sort")
    assert (task.n_ctx, len(task.vocab), len(task.outputs)) == (22, 52, 50)
    assert task.vocab[50:] == ("BOS", "MID")
    assert task.loss_positions == tuple(range(11, 21))
    assert task.positions[:2] == ("BOS", "a1")
    assert task.positions[11:13] == ("MID", "b1")
    assert len(task.held_out) == 2_000


def test_the_target_is_the_sorted_list_one_position_early():
    task = get_task("sort")
    ids = task.draw(np.random.default_rng(0), 50)
    lists, target = ids[:, 1:11], task.target(ids)
    np.testing.assert_array_equal(target, np.sort(lists, axis=1))
    np.testing.assert_array_equal(target[:, :-1], ids[:, 12:21])
    assert (ids[:, 0] == 50).all()
    assert (ids[:, 11] == 51).all()


def test_whether_a_list_is_held_out_depends_on_its_order():
    task = get_task("sort", n_values=3, length=3)
    ids = task.ids([["BOS", *p, "MID", 0, 1, 2] for p in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0])])
    assert task.is_held_out(ids).any()
    assert not task.is_held_out(ids).all()


def test_the_reference_program_is_right_on_the_task():
    task = get_task("sort")
    assert task.accuracy(task.programs["successor"], task.held_out[:200]) == (1, 1)
