"""What a variable can be: the domain of some values under an encoding, and the code of a value in it."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from rasplens.compile.errors import CompileError
from rasplens.compile.ir import Domain, HeldNode
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.values import NUMBERS_AGREE, as_number, value_key

RESOLUTION = 2.0**-20
"""The least gap between two values of a number, relative to the largest: float32 resolves an eighth of it."""

LARGEST, SMALLEST = 1e30, 1e-30
"""The most that a number may be, and the least gap between two: slopes of neurons are ratios of such numbers."""


def make_domain(node: HeldNode, values: Iterable[Value], is_partial: bool, max_values: float = math.inf) -> Domain:
    """The domain of some values, in the order of the node's encoding.

    Raises:
        CompileError: If there are none or too many, or as numbers they cannot be held.
    """
    by_key: dict[tuple[Any, ...], Value] = {}
    for value in values:
        held = held_number(node, value) if node.encoding is Encoding.NUMERICAL else value
        by_key.setdefault(value_key(held), held)
        if len(by_key) > max_values:
            raise CompileError(
                f"{node.name!r} can take more than {max_values:,} values. Reduce the vocabulary or "
                "max_len, round the values, or raise max_values of CompileLimits.",
                node.expr,
            )
    if not by_key:
        raise CompileError(f"{node.name!r} is undefined whatever the input.", node.expr)
    if node.encoding is not Encoding.NUMERICAL:
        return Domain(tuple(by_key.values()), is_partial)
    return _numbers(node, sorted(by_key.values()), is_partial)


def _numbers(node: HeldNode, ascending: list[Value], is_partial: bool) -> Domain:
    """Numbers in order; sums that differ by rounding alone are one.

    Raises:
        CompileError: If two are closer than the weights can resolve.
    """
    largest = max(abs(float(value)) for value in ascending)
    groups: list[list[Value]] = []
    for value in ascending:
        if groups and float(value) - float(groups[-1][0]) <= NUMBERS_AGREE * largest:
            groups[-1].append(value)
        else:
            groups.append([value])
    values = [group[0] for group in groups]
    gaps = np.diff(np.array([float(value) for value in values]))
    if len(gaps) and gaps.min() < max(RESOLUTION * largest, SMALLEST):
        at = int(gaps.argmin())
        raise CompileError(
            f"{node.name!r} can be {values[at]} and {values[at + 1]}, which is too close together for numbers up "
            f"to {largest:g}: weights resolve a millionth. Rescale or round it, or wrap it in categorical(...).",
            node.expr,
        )
    return Domain(tuple(values), is_partial, {i: tuple(g) for i, g in enumerate(groups) if len(g) > 1})


def held_number(node: HeldNode, value: Value) -> Value:
    """The number that a value is held as.

    Raises:
        CompileError: If it is none, or too large for any weight.
    """
    if not isinstance(value, bool | int | float | Fraction):
        raise CompileError(
            f"{node.name!r} is to be held as a number but can be {value!r}. Wrap it in categorical(...).",
            node.expr,
        )
    number = as_number(value)
    try:
        is_finite = abs(float(number)) <= LARGEST
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise CompileError(f"{node.name!r} can be {value}, which no weight can hold. Rescale it.", node.expr)
    return number


def coder(node: HeldNode, domain: Domain) -> Callable[[Value], int]:
    """The code of a value of the domain; of the nearest number, up to rounding."""
    if node.encoding is Encoding.NUMERICAL:
        numbers = np.array([float(value) for value in domain.values])
        return lambda value: int(np.abs(numbers - float(value)).argmin())
    codes = domain.codes()
    return lambda value: codes[value_key(value)]
