"""Intervals of a recipe's numbers: one for each field, checked by one rule."""

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, get_type_hints

from rasplens.errors import RaspLensError

COUNT = "[1, inf)"
NOT_NEGATIVE = "[0, inf)"
POSITIVE = "(0, inf)"
SHARE = "[0, 1]"
DECAY = "[0, 1)"
"""The decay of a moving average; at 1 it would never move."""

_KINDS: Mapping[Any, tuple[type, str]] = {int: (Integral, "a whole number"), float: (Real, "a number")}


def check_intervals(settings: Any, **intervals: str) -> None:
    """Raises unless every number of a dataclass lies in its interval; NaN and infinity lie in none.

    Args:
        settings: The dataclass. Each of its fields that is a number has an interval.
        intervals: The interval of each field in the usual notation: an end with a square bracket is included.

    Raises:
        RaspLensError: If a value has the wrong kind or is outside its interval.
    """
    types = get_type_hints(type(settings))
    for name in (field.name for field in fields(settings) if types[field.name] in _KINDS):
        value, (kind, word) = getattr(settings, name), _KINDS[types[name]]
        if isinstance(value, bool) or not isinstance(value, kind) or not is_within(value, intervals[name]):
            field = f"{type(settings).__name__}.{name}"
            raise RaspLensError(f"{field} must be {word} in {intervals[name]}; got {value!r}.")


def is_within(value: Any, interval: str) -> bool:
    """Whether a number lies in an interval."""
    least, most = map(float, interval[1:-1].split(","))
    above = value >= least if interval[0] == "[" else value > least
    return bool(above and (value <= most if interval[-1] == "]" else value < most))
