import numpy as np
import pytest

from rasplens.tasks.splits import held_out_by_hash, held_out_inputs


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


def test_held_out_inputs_are_different_from_each_other():
    def draw(rng, n):
        return rng.integers(0, 4, (n, 3))

    inputs = held_out_inputs(draw, held_out_by_hash, 100)
    assert held_out_by_hash(inputs).all()
    assert len(np.unique(inputs, axis=0)) == len(inputs) > 5
    assert 0 < len(held_out_inputs(draw, held_out_by_hash, 8)) <= 8


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_task_that_cannot_be_split_is_refused(share):
    with pytest.raises(ValueError, match=r"few.*inputs.*\d+ were drawn"):
        held_out_inputs(lambda rng, n: np.zeros((n, 2), int), lambda ids: np.full(len(ids), share == 1.0), 10)
