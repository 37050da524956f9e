import numpy as np
import pytest

from rasplens.errors import RaspLensError
from rasplens.model.random_streams import STREAMS, rng


def test_no_two_streams_share_a_number():
    assert len(set(STREAMS.values())) == len(STREAMS)
    assert min(STREAMS.values()) == 0


def test_streams_of_a_seed_differ_and_each_is_the_same_every_time():
    drawn = {name: tuple(rng(3, name).integers(0, 2**60, 4)) for name in STREAMS}
    assert len(set(drawn.values())) == len(STREAMS)
    assert drawn == {name: tuple(rng(3, name).integers(0, 2**60, 4)) for name in STREAMS}
    assert all(tuple(rng(4, name).integers(0, 2**60, 4)) != drawn[name] for name in STREAMS)


@pytest.mark.parametrize("seed", [0, 7, 2**40])
def test_weights_come_from_the_bare_seed(seed):
    np.testing.assert_array_equal(rng(seed, "initial weights").random(5), np.random.default_rng(seed).random(5))


def test_an_unknown_stream_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"no random stream 'noise'.*training inputs, .*permutation test"):
        rng(0, "noise")


@pytest.mark.parametrize("seed", [-1, True])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(RaspLensError, match="A seed is a whole number from 0 on"):
        rng(seed, "disguise")
