"""Independent trials."""

import numpy as np

from rasplens.compare.claims.trials import one_of_each


def test_one_answer_of_each_pair_counts():
    rng = np.random.default_rng(0)
    which = np.array([[True, True, False], [False, False, False], [False, False, True]])
    right = np.array([[True, False, False], [True, True, True], [False, False, True]])
    drawn = [one_of_each(right, which, rng) for _ in range(200)]
    assert {len(one) for one in drawn} == {2}  # the second pair has none
    assert all(one[1] for one in drawn)
    assert 0.35 < np.mean([one[0] for one in drawn]) < 0.65
