import numpy as np

from rasplens.tasks.split import held_out_by_hash


def test_one_input_in_five_is_held_out_whatever_the_last_token():
    ids = np.random.default_rng(0).integers(0, 50, (20_000, 10))
    held_out = held_out_by_hash(ids)
    assert abs(held_out.mean() - 0.2) < 0.01
    for token in range(0, 50, 7):
        assert abs(held_out[ids[:, -1] == token].mean() - 0.2) < 0.06
        assert abs(held_out[ids[:, 0] == token].mean() - 0.2) < 0.06


def test_the_split_is_fixed():
    """A change here would leak held-out inputs into models trained before."""
    pairs = np.array([[i, j] for i in range(5) for j in range(5)])
    assert np.flatnonzero(held_out_by_hash(pairs)).tolist() == [3, 12, 20, 21, 24]


def test_the_type_of_the_ids_does_not_matter():
    ids = np.random.default_rng(1).integers(0, 9, (100, 3))
    np.testing.assert_array_equal(held_out_by_hash(ids), held_out_by_hash(ids.astype(np.int32)))
