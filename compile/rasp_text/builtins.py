"""What the RASP language offers by itself: operations on constants, s-ops and selectors alike."""

from collections.abc import Callable, Mapping
from typing import Any

from rasplens.compile import rasp
from rasplens.compile.rasp import Comparison
from rasplens.errors import RaspLensError

MOST_ITEMS = 10_000
"""The longest list that `range` makes."""

COMPARISONS: Mapping[str, Comparison] = {
    "==": Comparison.EQ,
    "!=": Comparison.NEQ,
    "<": Comparison.LT,
    "<=": Comparison.LEQ,
    ">": Comparison.GT,
    ">=": Comparison.GEQ,
}

BY_PYTHON = frozenset({"+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">="})
"""The operators that s-ops have themselves."""


def is_static(value: Any) -> bool:
    """Whether a value is known before there is an input."""
    return not isinstance(value, rasp.RASPExpr)


def elementwise(function: Callable[..., Any], symbol: str, *parts: Any) -> Any:
    """A function of constants, or of s-ops position by position.

    Raises:
        RaspLensError: If a part is a selector.
    """
    if any(isinstance(part, rasp.Selector) for part in parts):
        raise RaspLensError(f"{symbol!r} works on numbers, strings and s-ops, not on a selector.")
    if all(map(is_static, parts)):
        return function(*parts)
    if symbol in BY_PYTHON and len(parts) == 2:
        return function(*parts)
    if len(parts) == 1:
        return rasp.Map(function, parts[0])
    left, right = parts
    if is_static(left):
        return rasp.Map(lambda value: function(left, value), right)
    if is_static(right):
        return rasp.Map(lambda value: function(value, right), left)
    return rasp.SequenceMap(function, left, right)


def sequence(value: Any) -> rasp.SOp:
    """An s-op as it is, a constant at every position.

    Raises:
        RaspLensError: If it is neither.
    """
    if isinstance(value, rasp.SOp):
        return value
    if isinstance(value, (bool, int, float, str)):
        return rasp.Full(value)
    raise RaspLensError(f"An s-op or a constant is needed here; got {_kind(value)}.")


def selector(value: Any) -> rasp.Selector:
    """A selector as it is.

    Raises:
        RaspLensError: If it is none.
    """
    if not isinstance(value, rasp.Selector):
        raise RaspLensError(f"A selector is needed here; got {_kind(value)}.")
    return value


def select(keys: Any, queries: Any, symbol: str) -> rasp.Selector:
    """The keys that compare to the query as the symbol says: key first."""
    return rasp.Select(sequence(keys), sequence(queries), COMPARISONS[symbol])


def aggregate(of: Any, values: Any, default: Any = 0) -> rasp.SOp:
    """The mean of the selected values; the default, 0 unless given, where nothing is selected."""
    if not isinstance(default, (bool, int, float, str)):
        raise RaspLensError(f"The default of aggregate is a constant; got {_kind(default)}.")
    return rasp.Aggregate(selector(of), sequence(values), default=default)


def where(condition: Any, then: Any, otherwise: Any) -> rasp.SOp:
    """The one value where a condition on the input holds, the other where it does not."""
    return rasp.Where(sequence(condition), sequence(then), sequence(otherwise))


def negation(value: Any) -> Any:
    """What is not: of a truth value, an s-op or a selector."""
    return (not value) if is_static(value) else ~value


def selector_width(of: Any) -> rasp.SOp:
    """How many keys are selected."""
    return rasp.SelectorWidth(selector(of))


def indicator(value: Any) -> Any:
    """1 where something holds, 0 where not."""
    return elementwise(_one_if, "indicator", value)


def rounded(value: Any) -> Any:
    """The nearest whole number."""
    return elementwise(round, "round", value)


def ranged(*numbers: Any) -> list[int]:
    """The list of whole numbers of Python's `range`."""
    if not 1 <= len(numbers) <= 3 or not all(type(number) is int for number in numbers):
        raise RaspLensError("range takes one to three whole numbers.")
    found = range(*numbers)
    if len(found) > MOST_ITEMS:
        raise RaspLensError(f"A range of {len(found):,} is too long; at most {MOST_ITEMS:,}.")
    return list(found)


def zipped(*lists: Any) -> list[list[Any]]:
    """Lists side by side: the first items, the second ones, and so on."""
    if not all(isinstance(one, (list, tuple, str)) for one in lists):
        raise RaspLensError("zip takes lists.")
    return [list(items) for items in zip(*lists, strict=False)]


def length_of(value: Any) -> int:
    """How many items a list, a dict or a string has."""
    if not isinstance(value, (list, dict, str, tuple)):
        raise RaspLensError(f"len takes a list, a dict or a string; got {_kind(value)}.")
    return len(value)


def _one_if(value: Any) -> int:
    return 1 if value else 0


def _kind(value: Any) -> str:
    kinds = (rasp.Selector, "a selector"), (rasp.SOp, "an s-op"), (list, "a list"), (dict, "a dict")
    return next((name for kind, name in kinds if isinstance(value, kind)), repr(value))


BUILTINS: Mapping[str, Any] = {
    "True": True,
    "False": False,
    "tokens": rasp.tokens,
    "tokens_str": rasp.tokens,
    "tokens_int": rasp.Map(int, rasp.tokens).named("tokens_int"),
    "tokens_float": rasp.Map(float, rasp.tokens).named("tokens_float"),
    "tokens_bool": rasp.Map(lambda token: token in (True, "True"), rasp.tokens).named("tokens_bool"),
    "indices": rasp.indices,
    "length": rasp.length,
    "aggregate": aggregate,
    "selector_width": selector_width,
    "indicator": indicator,
    "round": rounded,
    "range": ranged,
    "zip": zipped,
    "len": length_of,
}
"""The names that are known from the start; the library's are written in the language itself."""
