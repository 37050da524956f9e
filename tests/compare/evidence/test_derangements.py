import numpy as np
import pytest

from rasplens.compare.evidence.derangements import derangement


@pytest.mark.parametrize("n", [2, 3, 4, 7, 50])
def test_everything_moves_and_nothing_is_lost(n):
    for seed in range(30):
        order = derangement(n, np.random.default_rng(seed))
        assert sorted(order.tolist()) == list(range(n))
        assert (order != np.arange(n)).all()


def test_a_plain_permutation_is_no_derangement():
    """The negative control: without care, something stays in place two times out of three."""
    stays = [(np.random.default_rng(seed).permutation(7) == np.arange(7)).any() for seed in range(100)]
    assert np.mean(stays) > 0.4


def test_it_is_one_cycle_and_every_cycle_is_as_likely():
    counts = {}
    rng = np.random.default_rng(0)
    for _ in range(1_200):
        order = derangement(4, rng)
        seen, place = [0], int(order[0])
        while place != 0:
            seen.append(place)
            place = int(order[place])
        assert len(seen) == 4
        counts[tuple(seen)] = counts.get(tuple(seen), 0) + 1
    assert len(counts) == 6  # 3! cycles of four things
    assert min(counts.values()) > 140


def test_the_seed_says_which_one():
    first, again, other = (derangement(20, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
