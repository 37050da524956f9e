"""Varied inputs: the task's layout, without what goes together in it."""

import numpy as np
import pytest

from rasplens.tasks import get_task
from rasplens.tasks.out_of_distribution import POOL, out_of_distribution_inputs

TASKS = {
    "copy": get_task("copy", n_letters=8, block=3, length=9),
    "sort": get_task("sort"),
    "compression": get_task("compression"),
    "compression_notebook": get_task("compression_notebook"),
}


def allowed(task):
    """By position, the tokens that stand there in the task's own inputs."""
    own = np.concatenate([task.sample(np.random.default_rng(1), 5_000), task.held_out])
    return [set(column) for column in own.T.tolist()]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_position_keeps_to_its_tokens(task):
    ids = out_of_distribution_inputs(task, np.random.default_rng(0), 400)
    assert ids.shape == (400, task.n_ctx)
    for column, tokens in zip(ids.T.tolist(), allowed(task), strict=True):
        assert set(column) <= tokens
        assert (len(set(column)) == 1) == (len(tokens) == 1)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_an_input_is_made_of_few_tokens(task):
    """At the positions where every token may stand that may stand anywhere but at fixed places."""
    tokens = [column for column in allowed(task) if len(column) > 1]
    everything = set().union(*tokens)
    choice = [position for position, column in enumerate(allowed(task)) if column == everything]
    assert choice
    ids = out_of_distribution_inputs(task, np.random.default_rng(0), 200)[:, choice]
    counts = np.array([len(set(row)) for row in ids.tolist()])
    assert counts.max() <= POOL
    assert len(np.unique(ids)) > POOL  # not one pool for all


def test_no_token_follows_from_another():
    """In the copy task every letter is that of a block before; in varied inputs only now and then."""
    task = TASKS["copy"]
    own, ids = (
        task.sample(np.random.default_rng(0), 500),
        out_of_distribution_inputs(task, np.random.default_rng(0), 500),
    )
    assert (own[:, 3:] == own[:, :-3]).all()
    agree = (ids[:, 3:] == ids[:, :-3]).mean(axis=0)
    assert (agree > 1 / POOL - 0.1).all()  # a pool of three repeats itself often
    assert (agree < 0.6).all()


def test_the_seed_says_which_inputs_they_are():
    task = TASKS["sort"]
    first, again, other = (out_of_distribution_inputs(task, np.random.default_rng(seed), 50) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
