import numpy as np
import pytest

from rasplens.compile import UndefinedValue
from rasplens.compile.rasp import Encoding
from rasplens.compile.variable import Variable, nearest

CLASSES = Variable("c", Encoding.CATEGORICAL, ("x", "y", "z"), np.eye(3), np.arange(3), "blocks.0.hook_resid_post")
NUMBERS = Variable("n", Encoding.NUMERICAL, (0.0, 0.1, 5.0), np.eye(2), np.arange(2), "blocks.0.hook_resid_post")


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


def test_mixtures_are_refused():
    with pytest.raises(
        UndefinedValue, match=r"'c' holds no single value but a mixture \(0.60 of 'y', 0.40 of 'x'"
    ):
        CLASSES.decode(np.array([[0.4, 0.6, 0.0]]))
    with pytest.raises(
        UndefinedValue, match=r"'n' holds no single value but a mixture \(2.5, between its values\)"
    ):
        NUMBERS.decode(np.array([[2.5]]))


def test_the_code_of_a_value_is_its_place():
    assert [CLASSES.code(value) for value in "xyz"] == [0, 1, 2]
    assert NUMBERS.code(0.1 + 1e-12) == 1
    with pytest.raises(KeyError, match="'c' is never 'w'"):
        CLASSES.code("w")
