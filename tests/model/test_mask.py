import numpy as np

from rasplens.model import bidirectional_mask, causal_mask


def test_causal_positions_see_themselves_and_the_past():
    mask = causal_mask(2, 3)
    assert mask.shape == (2, 3, 3)
    np.testing.assert_array_equal(mask[1], [[1, 0, 0], [1, 1, 0], [1, 1, 1]])


def test_bidirectional_positions_see_everything():
    assert bidirectional_mask(2, 3).all()
    assert bidirectional_mask(2, 3).shape == (2, 3, 3)
