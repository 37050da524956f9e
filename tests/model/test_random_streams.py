from pathlib import Path

import numpy as np
import pytest

import rasplens
from rasplens.errors import RaspLensError
from rasplens.model.random_streams import STREAMS, first_map, rng


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
    with pytest.raises(ValueError, match=r"'noise'.*training inputs, .*permutation test"):
        rng(0, "noise")


@pytest.mark.parametrize("seed", [-1, True])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(RaspLensError, match=f"seed.*whole number.*{seed}"):
        rng(seed, "disguise")


def test_the_first_map_of_a_compression_has_a_key_that_is_no_streams():
    drawn = first_map(8, 0, 1).random(5)
    np.testing.assert_array_equal(drawn, first_map(8, 0, 1).random(5))
    assert not np.array_equal(drawn, first_map(9, 0, 1).random(5))
    assert not any(np.array_equal(drawn, rng(seed, name).random(5)) for seed in (0, 8, 20) for name in STREAMS)
    with pytest.raises(RaspLensError, match="seed"):
        first_map(8)


def test_nobody_else_makes_up_a_key():
    """A list of numbers for `default_rng` is a stream that is not in the table."""
    root = Path(rasplens.__file__).parents[1]
    acts = [
        path
        for act in ("model", "compile", "tasks", "learned", "compare", "rasplens")
        for path in (root / act).rglob("*.py")
    ]
    assert len(acts) > 100
    found = [path for path in acts if "default_rng([" in path.read_text()]
    assert [path.name for path in found] == ["random_streams.py"]
