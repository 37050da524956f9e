"""Means of s-ops that are not held as numbers: what attention averages, and what has to be told besides.

A head averages numbers alone. But a mean keeps what it averages where all of it is one value: "BOS", or True,
which is not 1. So classes are gathered apart from the mean of the numbers, and a value that a mean does not tell
is known by its share of what is selected.
"""

from collections.abc import Callable, Mapping, Sequence

from rasplens.compile import rasp
from rasplens.compile.analysis.domains import Averaged
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.values import as_number, is_real, value_key


def is_plain(value: Value) -> bool:
    """Whether a value is a number in the one form that means have."""
    return is_real(value) and value_key(as_number(value)) == value_key(value)


def is_mean_alone(averaged: Averaged, default: Value) -> bool:
    """Whether the mean of what is averaged, as a number, tells all."""
    return (
        all(map(is_real, averaged.values))
        and all(map(is_plain, averaged.read))
        and (default is None or is_plain(default))
    )


def number_or(otherwise: Value) -> Callable[[Value], Value]:
    """The function that takes numbers as they are, and something else for all other values."""
    return lambda value: as_number(value) if is_real(value) else otherwise


def mean_of_numbers(expr: rasp.Aggregate, averaged: Averaged) -> rasp.Aggregate:
    """The aggregate over the numbers alone: the mean where nothing else is selected.

    Where a class may be selected beside numbers it counts as undefined, which the mean then is, too.
    """
    otherwise = 0 if all(map(is_real, averaged.read)) else None
    numbers = rasp.Map(number_or(otherwise), expr.sop).named(f"{expr.name} (numbers)")
    return rasp.Aggregate(expr.selector, rasp.numerical(numbers), expr.default, annotations=expr.annotations)


def mean_in_parts(expr: rasp.Aggregate, averaged: Averaged) -> rasp.SOp:
    """The categorical aggregate, put together from a mean and what it does not tell."""
    forms, marked = _forms(list(filter(is_real, averaged.read)))
    has_kinds = not all(map(is_real, averaged.read)) or not (
        expr.default is None or (is_plain(expr.default) and expr.default not in forms)
    )
    nothing = None if expr.default is None else 0
    numbers = expr.sop
    if not all(map(is_real, averaged.values)):
        numbers = rasp.numerical(rasp.Map(number_or(0), expr.sop).named(f"{expr.name} (numbers)"))
    default = nothing if has_kinds else expr.default
    mean = rasp.numerical(rasp.Aggregate(expr.selector, numbers, default)).named(f"{expr.name} (mean)")
    whole: rasp.SOp = rasp.Map(lambda number: forms.get(number, number), mean)
    if has_kinds:
        whole = rasp.SequenceMap(lambda kind, value: kind[0] if kind else value, _kind(expr), whole)
    for value in marked:
        whole = rasp.SequenceMap(_chooser(value), _share(expr, value, nothing), whole)
    return rasp.annotate(whole, **{**expr.annotations, "name": expr.name})


def _kind(expr: rasp.Aggregate) -> rasp.SOp:
    """Gathers what is no number, and the default, each in a tuple; an empty one stands for any number."""
    kinds = rasp.Map(lambda value: () if is_real(value) else (value,), expr.sop).named(f"{expr.name} (kinds)")
    default = None if expr.default is None else (expr.default,)
    return rasp.Aggregate(expr.selector, kinds, default).named(f"{expr.name} (kind)")


def _share(expr: rasp.Aggregate, value: Value, nothing: Value) -> rasp.SOp:
    """The share of a value in what is selected."""
    key = value_key(value)
    is_value = rasp.Map(lambda other: int(value_key(other) == key), expr.sop).named(f"{expr.name} (is {value!r})")
    shares = rasp.Aggregate(expr.selector, rasp.numerical(is_value), nothing)
    return rasp.numerical(shares).named(f"{expr.name} (share of {value!r})")


def _chooser(value: Value) -> Callable[[Value, Value], Value]:
    return lambda share, otherwise: value if share == 1 else otherwise


def _forms(values: Sequence[Value]) -> tuple[Mapping[Value, Value], Sequence[Value]]:
    """By number, the value that a mean of that number is; and the values that a mean does not tell.

    The mean of some values is the least or the greatest only if all of them are.
    """
    forms: dict[Value, list[Value]] = {}
    for value in values:
        forms.setdefault(as_number(value), []).append(value)
    ends = {min(forms), max(forms)} if forms else set()
    told = {number: same[0] for number, same in forms.items() if number in ends and len(same) == 1}
    marked = [
        value for number, same in forms.items() if number not in told for value in same if not is_plain(value)
    ]
    return told, marked
