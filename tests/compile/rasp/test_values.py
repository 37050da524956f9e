from fractions import Fraction

import numpy as np
import pytest

from rasplens.compile.rasp.values import as_number, exact, plain, value_key


def test_keys_tell_types_apart_inside_tuples_too():
    assert value_key((1, 2)) != value_key((True, 2))
    assert value_key(1) != value_key(1.0)
    assert value_key((1, ("a",))) == value_key((1, ("a",)))


def test_keys_tell_values_apart_that_are_equal_or_nearly_so():
    assert value_key(-0.0) != value_key(0.0)
    assert value_key((0.0,)) != value_key((-0.0,))
    assert value_key(0.1 + 0.2) != value_key(0.3)
    assert value_key(10**18) != value_key(10**18 + 1)


def test_numbers_have_one_form():
    assert [as_number(v) for v in (True, 2, 2.0, 0.5)] == [1, 2, 2, 0.5]
    assert all(type(as_number(v)) is int for v in (True, 2, 2.0, Fraction(4, 2), 2 + Fraction(1, 10**20)))


def test_numpy_scalars_become_plain():
    assert type(plain(np.float64(0.5))) is float
    assert type(plain(np.bool_(True))) is bool
    assert plain("a") == "a"


def test_floats_stand_for_fractions_up_to_a_large_denominator():
    """A sum of shares of a thousand-odd parts comes out exactly; a binary fraction stays what it is."""
    assert exact(1 / 3) == Fraction(1, 3)
    assert exact(355 / 1009) == Fraction(355, 1009)
    assert exact(1 / 999_983) == Fraction(1, 999_983)
    assert exact(2.0**-40) == Fraction(1, 2**40)
    assert exact(1 / 1_234_567) == Fraction(*(1 / 1_234_567).as_integer_ratio())  # the denominator is too large
    assert 0 < abs(3 * exact(1 / 1_234_567) - exact(3 / 1_234_567)) < 1e-21
    with pytest.raises(ValueError, match="finite number"):
        exact(float("inf"))


def test_a_float_of_a_large_denominator_stands_for_itself():
    assert exact(1 / 999_983) == Fraction(1, 999_983)
    assert exact(1 / 1_234_567) == Fraction(1 / 1_234_567)
    assert 0 < abs(3 * exact(1 / 1_234_567) - exact(3 / 1_234_567)) < 1e-21
