"""Built-in operations of the RASP language, on constants, s-ops and selectors alike."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from rasplens.compile import rasp
from rasplens.compile.rasp import Comparison
from rasplens.compile.rasp.language import elementwise
from rasplens.compile.rasp_text.bounds import MOST_ITEMS, bounded, check_items
from rasplens.compile.rasp_text.kinds import is_atom, is_static, kind_of
from rasplens.errors import RaspLensError

COMPARISONS: Mapping[str, Comparison] = {
    "==": Comparison.EQ,
    "!=": Comparison.NEQ,
    "<": Comparison.LT,
    "<=": Comparison.LEQ,
    ">": Comparison.GT,
    ">=": Comparison.GEQ,
}


def mapped(function: Callable[[Any], Any], word: str, value: Any) -> Any:
    """A function of a constant, or of an s-op position by position.

    Raises:
        RaspLensError: If the value is a selector.
    """
    if isinstance(value, rasp.Selector):
        raise RaspLensError(f"{word!r} works on numbers, strings and s-ops, not on a selector.")
    return function(value) if is_static(value) else rasp.Map(function, value)


def sequence(value: Any) -> rasp.SOp:
    """An s-op as it is, a constant at every position.

    Raises:
        RaspLensError: If it is neither.
    """
    if isinstance(value, rasp.SOp):
        return value
    if is_atom(value):
        return rasp.Full(value)
    raise RaspLensError(f"An s-op or a constant is needed here; got {kind_of(value)}.")


def selector(value: Any) -> rasp.Selector:
    """A selector as it is.

    Raises:
        RaspLensError: If it is none.
    """
    if not isinstance(value, rasp.Selector):
        raise RaspLensError(f"A selector is needed here; got {kind_of(value)}.")
    return value


def select(keys: Any, queries: Any, symbol: str) -> rasp.Selector:
    """The keys that compare to the query as the symbol says: key first."""
    return rasp.Select(sequence(keys), sequence(queries), COMPARISONS[symbol])


def aggregate(of: Any, values: Any, default: Any = 0) -> rasp.SOp:
    """The mean of the selected values; the default, 0 unless given, where nothing is selected."""
    if not is_atom(default):
        raise RaspLensError(f"The default of aggregate must be a constant; got {kind_of(default)}.")
    return rasp.Aggregate(selector(of), sequence(values), default=default)


def where(condition: Any, then: Any, otherwise: Any) -> rasp.SOp:
    """The one value where a condition on the input holds, the other where it does not."""
    return rasp.Where(sequence(condition), sequence(then), sequence(otherwise))


def negation(value: Any) -> Any:
    """Return the negation of a truth value, an s-op or a selector."""
    return (not value) if is_static(value) else ~value


def contained(value: Any, container: Any) -> Any:
    """Whether a value is in a list, a dict or a string of constants; or whether an s-op has it at any position.

    Raises:
        RaspLensError: If it is not known beforehand what is in there.
    """
    if isinstance(container, rasp.SOp):
        if not is_atom(value):
            raise RaspLensError(f"`in` needs a constant on the left of an s-op; got {kind_of(value)}.")
        return elementwise(operator.gt, ">", selector_width(select(container, value, "==")), 0)
    if not isinstance(container, (list, dict, str, tuple)) or not all(map(is_static, container)):
        raise RaspLensError("`in` needs an s-op, or a list, a dict or a string of constants, on its right.")
    return mapped(lambda one: one in container, "in", value)


def selector_width(of: Any) -> rasp.SOp:
    """How many keys are selected."""
    return rasp.SelectorWidth(selector(of))


def indicator(value: Any) -> Any:
    """1 where something holds, 0 where not."""
    return mapped(_one_if, "indicator", value)


def rounded(value: Any) -> Any:
    """The nearest whole number."""
    return mapped(round, "round", value)


def ranged(*numbers: Any) -> list[int]:
    """The list of whole numbers of Python's `range`."""
    if not 1 <= len(numbers) <= 3 or not all(isinstance(number, int) for number in numbers):
        raise RaspLensError(
            f"range takes one to three whole numbers; got {', '.join(map(kind_of, numbers)) or 'none'}."
        )
    found = range(*map(bounded, numbers))
    check_items(len(found[: MOST_ITEMS + 1]))
    return list(found)


def zipped(*lists: Any) -> list[list[Any]]:
    """Lists side by side: the first items, the second ones, and so on."""
    if not lists or not all(isinstance(one, (list, tuple, str)) for one in lists):
        raise RaspLensError(f"zip takes one or more lists; got {', '.join(map(kind_of, lists)) or 'none'}.")
    if len({len(one) for one in lists}) > 1:
        raise RaspLensError(f"zip takes lists of one length; got {', '.join(str(len(one)) for one in lists)}.")
    return [list(items) for items in zip(*lists, strict=True)]


def length_of(value: Any) -> int:
    """How many items a list, a dict or a string has."""
    if not isinstance(value, (list, dict, str, tuple)):
        raise RaspLensError(f"len takes a list, a dict or a string; got {kind_of(value)}.")
    return len(value)


def _one_if(value: Any) -> int:
    return 1 if value else 0


BUILTINS: Mapping[str, Any] = {
    "True": True,
    "False": False,
    "tokens": rasp.tokens,
    "tokens_asis": rasp.tokens,
    "tokens_str": rasp.Map(str, rasp.tokens).named("tokens_str"),
    "tokens_int": rasp.Map(int, rasp.tokens).named("tokens_int"),
    "tokens_float": rasp.Map(float, rasp.tokens).named("tokens_float"),
    "tokens_bool": rasp.Map(bool, rasp.tokens).named("tokens_bool"),
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
