"""Directions behind a stream's own that make layer norm divide by a number known in advance."""

import numpy as np
import pytest

from rasplens.model.constant_norm import CONSTANT, N_MORE, ConstantNorm
from rasplens.model.forward import LAYER_NORM_EPSILON

LENGTH = 3.0


def normalized(stream):
    """Layer norm without scale and shift."""
    centred = stream - stream.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)


@pytest.fixture
def vectors():
    """Of a stream of five directions, none longer than `LENGTH`."""
    drawn = np.random.default_rng(0).normal(size=(50, 5))
    return drawn * LENGTH / np.sqrt((drawn**2).sum(-1) + drawn.sum(-1) ** 2).max()


@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_read_is_what_was_written(vectors, first, dtype):
    stream = ConstantNorm(5, first + 5 + N_MORE, CONSTANT * LENGTH, first)
    written = (stream.written(vectors) + stream.constant_direction).astype(dtype)
    read = stream.divisor * normalized(written) @ stream.read(np.eye(5)).astype(dtype)
    np.testing.assert_allclose(read, vectors, atol=1e-4 * LENGTH if dtype == np.float64 else 2e-3)
    ones = stream.divisor * normalized(written) @ stream.reads_one.astype(dtype)
    np.testing.assert_allclose(ones, 1.0, atol=1e-5)


def test_without_the_constant_layer_norm_changes_lengths(vectors):
    stream = ConstantNorm(5, 5 + N_MORE, CONSTANT * LENGTH)
    read = stream.divisor * normalized(stream.written(vectors)) @ stream.read(np.eye(5))
    assert np.abs(read - vectors).max() > 10 * LENGTH
    assert np.abs(stream.divisor * normalized(stream.written(vectors)) @ stream.reads_one).max() < 1e-9
    np.testing.assert_allclose(stream.written(vectors).sum(axis=-1), 0, atol=1e-12)
