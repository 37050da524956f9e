from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.compile import UndefinedValue
from rasplens.compile.rasp import Encoding
from rasplens.compile.variable import TOLERANCE, Axes, ObliqueDirections, Variable, nearest
from rasplens.model.twins.change_of_basis import oblique, widening

POINT = "blocks.0.hook_resid_post"
CLASSES = Variable("c", Encoding.CATEGORICAL, ("x", "y", "z"), np.eye(3), Axes(np.arange(3)), POINT)
NUMBERS = Variable("n", Encoding.NUMERICAL, (0, 0.1, 5), np.eye(2), Axes(np.arange(2)), POINT)


def test_classes_are_decoded_from_one_hots():
    codes, errors = nearest(CLASSES, np.array([[0.0, 1, 0], [0, 0, 0], [0.1, 0.8, 0], [0.5, 0.5, 0]]))
    np.testing.assert_array_equal(codes, [1, -1, 1, -1])
    np.testing.assert_allclose(errors, [0, 0, 0.2, 0.5])


def test_numbers_are_decoded_to_the_nearest_in_units_of_the_gap():
    codes, errors = nearest(NUMBERS, np.array([[0.02], [0.1], [4.0]]))
    np.testing.assert_array_equal(codes, [0, 1, 2])
    np.testing.assert_allclose(errors, [0.2, 0, 1 / 4.9])


def test_numbers_that_can_be_undefined_say_so():
    codes, errors = nearest(NUMBERS, np.array([[0.0, 1.0], [0.0, 0.0], [3.0, 0.1], [0.1, 0.7]]))
    np.testing.assert_array_equal(codes, [0, -1, -1, 1])
    np.testing.assert_allclose(errors, [0, 0, 0.1, 0.3])


@pytest.mark.parametrize(("variable", "width"), [(CLASSES, 3), (NUMBERS, 1), (NUMBERS, 2)])
def test_jax_decodes_as_numpy_does(variable, width):
    """Also what is no value: two at once, too much of one, and what is more than there or less than not there."""
    random = np.random.default_rng(0)
    mixed = random.choice([0, 0, 0, 0, 1, 1, 2, -0.3, 0.9, 5, 4.7], (500, width))
    coordinates = np.concatenate([mixed, random.normal(size=(100, width))]).astype(np.float32)
    codes, errors = nearest(variable, coordinates)
    codes_of_jax, errors_of_jax = jax.jit(lambda given: nearest(variable, given, jnp))(coordinates)
    np.testing.assert_array_equal(codes_of_jax, codes)
    np.testing.assert_allclose(errors_of_jax, errors, rtol=1e-5)
    assert 0.05 < (errors > TOLERANCE).mean() < 0.95


def test_mixtures_are_refused():
    with pytest.raises(UndefinedValue, match=r"'c'.*mixture.*0\.60 of 'y', 0\.40 of 'x'"):
        CLASSES.decode(np.array([[0.4, 0.6, 0.0]]))
    with pytest.raises(UndefinedValue, match=r"'n'.*mixture.*2\.5"):
        NUMBERS.decode(np.array([[2.5]]))


def test_the_code_of_a_value_is_its_place():
    assert [CLASSES.code(value) for value in "xyz"] == [0, 1, 2]
    assert NUMBERS.code(5.0) == NUMBERS.code(5) == 2
    with pytest.raises(KeyError, match=r"'n'.*0\.100000000001"):
        NUMBERS.code(0.1 + 1e-12)
    with pytest.raises(KeyError, match=r"'c'.*'w'"):
        CLASSES.code("w")


def test_in_another_basis_it_reads_the_same_and_its_projector_takes_out_the_same():
    variable = Variable("v", Encoding.CATEGORICAL, ("x", "y"), np.eye(5)[:, 1:3], Axes(np.array([1, 2])), POINT)
    rng = np.random.default_rng(0)
    stream, change = rng.normal(size=(7, 5)), oblique(5, 20.0, rng)
    turned = variable.in_basis(change)
    there = stream @ change.writes
    np.testing.assert_allclose(turned.read(there), variable.read(stream), atol=1e-12)
    left = stream - stream @ variable.projector
    assert not left[:, 1:3].any()
    np.testing.assert_array_equal(left[:, [0, 3, 4]], stream[:, [0, 3, 4]])
    np.testing.assert_allclose(there - there @ turned.projector, left @ change.writes, atol=1e-12)
    back = turned.in_basis(oblique(5, 3.0, rng))
    assert isinstance(back.place, ObliqueDirections)
    np.testing.assert_allclose(back.place.writes @ back.place.reads, np.eye(2), atol=1e-12)


def test_directions_are_axes_or_are_refused():
    wider = NUMBERS.in_basis(widening(2, 3))
    np.testing.assert_array_equal(wider.directions, [0, 1])
    assert wider.columns.shape == (5, 2)
    turned = NUMBERS.in_basis(oblique(2, 2.0, np.random.default_rng(0)))
    with pytest.raises(ValueError, match=r"'n'.*disguised"):
        _ = turned.directions


@pytest.mark.parametrize("noise", [0, 1e-6, -1e-6])
def test_half_of_two_values_is_neither_however_it_is_rounded(noise):
    """A disguised model once answered with either, where the model that was disguised had no answer."""
    codes, errors = nearest(CLASSES, np.array([[0.5 + noise, 0.5 - noise, 0.0], [2 / 3, 1 / 3, 0.0]]))
    assert codes.tolist() == [-1, 0]
    assert (errors > 0.3).all()
    partial = replace(NUMBERS, columns=np.eye(2))
    assert nearest(partial, np.array([[0.1, 0.5 + noise]]))[0].tolist() == [-1]
