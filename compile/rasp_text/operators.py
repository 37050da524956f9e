"""The operators of the RASP language, on constants, s-ops and selectors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rasplens.compile import rasp
from rasplens.compile.rasp.language import elementwise
from rasplens.compile.rasp_text.bounds import bounded, check_bits, check_items
from rasplens.compile.rasp_text.kinds import is_static, kind_of
from rasplens.errors import RaspLensError


@dataclass(frozen=True)
class Operator:
    """An operator on two values, whether they are constants or those of s-ops at a position.

    Attributes:
        function: Of the two values.
        written: How it is written, with `{}` for its sides.
    """

    function: Callable[[Any, Any], Any]
    written: str

    def __call__(self, left: Any, right: Any) -> Any:
        """The value; an error if it is too large."""
        return bounded(self.function(left, right))


def _times(left: Any, right: Any) -> Any:
    for many, number in ((left, right), (right, left)):
        if isinstance(many, (str, list)) and isinstance(number, int):
            check_items(len(many) * number)
    return left * right


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        check_bits((left.bit_length() - 1) * right)
    try:
        found = left**right
    except OverflowError:
        raise OverflowError(f"{left} to the power of {right} is larger than any float") from None
    if isinstance(found, complex):
        raise ValueError(f"{left} to the power of {right} is not a real number")
    return found


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        raise TypeError("'%' needs a number on its left; got a string")
    return left % right


def _both(left: Any, right: Any) -> bool:
    return bool(left) and bool(right)


def _either(left: Any, right: Any) -> bool:
    return bool(left) or bool(right)


OPERATORS: Mapping[str, Operator] = {
    "+": Operator(operator.add, "({} + {})"),
    "-": Operator(operator.sub, "({} - {})"),
    "*": Operator(_times, "({} * {})"),
    "/": Operator(operator.truediv, "({} / {})"),
    "%": Operator(_remainder, "({} % {})"),
    "^": Operator(_power, "({} ** {})"),
    "==": Operator(operator.eq, "({} == {})"),
    "!=": Operator(operator.ne, "({} != {})"),
    "<": Operator(operator.lt, "({} < {})"),
    "<=": Operator(operator.le, "({} <= {})"),
    ">": Operator(operator.gt, "({} > {})"),
    ">=": Operator(operator.ge, "({} >= {})"),
    "and": Operator(_both, "({} and {})"),
    "or": Operator(_either, "({} or {})"),
}
"""By their symbol; `and` and `or` as they are of s-ops."""

OF_CONSTANTS: Mapping[str, Callable[[Any, Any], Any]] = {
    **OPERATORS,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
}
"""By their symbol, the operators of constants: there `and` and `or` give the side that decides, as in Python."""


def joined(symbol: str, left: Any, right: Any) -> Any:
    """Apply an operator to two constants, two selectors, or s-ops and constants position by position.

    Raises:
        RaspLensError: If it does not work on such.
    """
    selectors = [isinstance(part, rasp.Selector) for part in (left, right)]
    if any(selectors):
        return _of_selectors(symbol, left, right, all(selectors))
    if is_static(left) and is_static(right):
        return OF_CONSTANTS[symbol](left, right)
    for part in (left, right):
        if not isinstance(part, (rasp.SOp, bool, int, float, str)):
            raise RaspLensError(f"{symbol!r} combines s-ops and constants; got {kind_of(part)}.")
    return elementwise(OPERATORS[symbol], symbol, left, right)


def _of_selectors(symbol: str, left: Any, right: Any, are_both: bool) -> rasp.Selector:
    if symbol not in ("and", "or"):
        raise RaspLensError(f"{symbol!r} works on numbers, strings and s-ops, not on a selector.")
    if not are_both:
        raise RaspLensError(f"{symbol!r} combines two selectors or two s-ops, not one of each.")
    found: rasp.Selector = left & right if symbol == "and" else left | right
    return found
