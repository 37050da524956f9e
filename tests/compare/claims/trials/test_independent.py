"""Independent trials."""

import numpy as np
from known_trials import inputs_of

from rasplens.compare.claims.trials.independent import one_of_each


def test_one_answer_of_each_pair_counts():
    rng = np.random.default_rng(0)
    inputs = inputs_of(np.zeros((9, 4), dtype=int))
    base, source = np.array([4, 5, 6]), np.array([7, 8, 0])
    which = np.array([[True, True, False, False], [False] * 4, [False, False, True, False]])
    right = np.array([[True, False, False, False], [True] * 4, [False, False, True, False]])
    drawn = [one_of_each(inputs, base, right, which, rng, source) for _ in range(200)]
    assert {len(one) for one in drawn} == {2}  # the second pair has none
    assert all(one.base.tolist() == [4, 6] and one.source.tolist() == [7, 0] for one in drawn)
    assert all(one.right[1] and one.answer[1] == 2 for one in drawn)
    assert 0.35 < np.mean([one.right[0] for one in drawn]) < 0.65
    assert {int(one.answer[0]) for one in drawn} == {0, 1}


def test_some_trials_are_trials():
    inputs = inputs_of(np.zeros((3, 4), dtype=int))
    everything = np.ones((3, 4), dtype=bool)
    found = one_of_each(inputs, np.arange(3), everything, everything, np.random.default_rng(0))
    assert found.source is None
    assert found.of(slice(2)).base.tolist() == [0, 1]
    assert found.of(np.array([False, False, True])).base.tolist() == [2]
