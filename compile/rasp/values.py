"""When two values are one: `True` is not `1`, but numbers held as such are the same up to rounding."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from rasplens.compile.rasp.language import Encoding, Value

NUMBERS_AGREE = 1e-9
"""Relative difference below which two numbers are one, reached by different sums."""

LARGEST_DENOMINATOR = 10**6
"""The largest denominator of a fraction that a float is taken to stand for."""


def value_key(value: Value) -> tuple[Any, ...]:
    """A key that tells values apart by type as well, so that `True` is not `1`."""
    if isinstance(value, tuple):
        return (tuple, *(value_key(part) for part in value))
    return (type(value), value)


def exact(number: float | Fraction) -> Fraction:
    """The rational that a number stands for: a float is the simplest fraction that rounds to it.

    So 1 / 3 is a third, and what is added up exactly from thirds and tenths comes out exactly. Floats
    that no denominator up to `LARGEST_DENOMINATOR` rounds to stand for themselves.

    Raises:
        ValueError: If it is infinite or no number.
    """
    if not isinstance(number, float):
        return Fraction(number)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no finite number")
    simple = Fraction(number).limit_denominator(LARGEST_DENOMINATOR)
    return simple if float(simple) == number else Fraction(number)


def as_number(value: Value) -> Value:
    """A number in the one form that numerical s-ops take: whole numbers are ints, True is 1, others floats."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
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


def numbers_agree(x: float, y: float) -> bool:
    """Whether two numbers are the same up to rounding."""
    return math.isclose(x, y, rel_tol=NUMBERS_AGREE)


def values_agree(expected: Value, got: Value, encoding: Encoding) -> bool:
    """Whether two values of an s-op are the same: by type and value, floats and numbers up to rounding."""
    if expected is None or got is None:
        return expected is got
    if encoding is Encoding.NUMERICAL or (type(expected) is float and type(got) is float):
        return numbers_agree(expected, got)
    return value_key(expected) == value_key(got)
