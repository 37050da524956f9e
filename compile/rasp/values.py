"""When two values are one: by type and value, exactly. `True` is not `1`, and `-0.0` is not `0.0`."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from rasplens.compile.rasp.language import Value
from rasplens.errors import RaspLensError

LARGEST_DENOMINATOR = 10**6
"""The largest denominator of a fraction that a float is taken to stand for."""

LARGEST_WHOLE = 2**53
"""Up to here, floats hold every whole number."""


def value_key(value: Value) -> tuple[Any, ...]:
    """A key that tells values apart by type as well, so that `True` is not `1`; and zeros by sign.

    A numpy scalar is the Python value that it stands for.
    """
    value = plain(value)
    if isinstance(value, tuple):
        return (tuple, *(value_key(part) for part in value))
    if value == 0 and isinstance(value, float):
        return (float, value, math.copysign(1, value))
    return (type(value), value)


def exact(number: float | Fraction) -> Fraction:
    """The rational that a number stands for: a float is the nearest simple fraction, if that rounds to it.

    So 1 / 3 is a third, and what is added up exactly from thirds and tenths comes out exactly. Floats
    that no fraction with a denominator up to `LARGEST_DENOMINATOR` rounds to stand for themselves, and so
    3 / 1234567 is not quite thrice 1 / 1234567.

    Raises:
        RaspLensError: If it is infinite or no number.
    """
    if not isinstance(number, float):
        return Fraction(number)
    if not math.isfinite(number):
        raise RaspLensError(f"{number} is not a finite number")
    simple = Fraction(number).limit_denominator(LARGEST_DENOMINATOR)
    return simple if float(simple) == number else Fraction(number)


def is_value(value: object) -> bool:
    """Whether something is a value of RASP: a bool, int, str, float but nan, or a tuple of those.

    A str with half of a surrogate pair is none: no file, page or terminal takes it.
    """
    if isinstance(value, tuple):
        return all(part is None or is_value(part) for part in value)
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, bool | int | float) and value == value


VALUES = "a string without lone surrogates, a number other than nan, a boolean, or a tuple of those"
"""The values of RASP, in the words of an error message: "must be …"."""


def is_number(value: object) -> bool:
    """Whether a value is an int or a float; a bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """Whether a value can be averaged: an int, a float or a bool."""
    return isinstance(value, bool | int | float)


def is_exact(value: Value) -> bool:
    """Whether a value is a number that a float holds exactly, so that numpy compares it as Python does."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= LARGEST_WHOLE)


def as_number(value: Value) -> Value:
    """A number in the one form that numerical s-ops take: whole numbers are ints, True is 1, others floats."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else as_number(float(value))
    if isinstance(value, bool | int):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def canonical(value: Value) -> Value:
    """One of all values that are equal as scores: True, 1 and 1.0 are 1, inside tuples too."""
    if isinstance(value, tuple):
        return tuple(canonical(part) for part in value)
    return as_number(value)


def plain(value: Value) -> Value:
    """The Python value of a numpy scalar; every other value as it is."""
    return value.item() if isinstance(value, np.generic) else value
