"""Domains of variables: their values under an encoding, and the code of a value in them."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rasplens.compile.errors import CompileError, PrecisionError
from rasplens.compile.ir import Domain, HeldNode
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.values import as_number, value_key

LARGEST = 1e30
"""The largest magnitude of a number: the slopes of neurons are ratios of such numbers."""


class ValuesError(CompileError):
    """Values that an operation can be, or can meet, are too many, or none that it can be."""


class NotANumberError(ValuesError):
    """A variable that is read as a number can be something else.

    Attributes:
        value: What it can be.
    """

    def __init__(self, message: str, node: HeldNode, value: Value) -> None:
        super().__init__(message, node.expr)
        self.value = value


@dataclass(frozen=True)
class Averaged:
    """The values that a number is computed from.

    Attributes:
        values: All values of the s-ops that it is computed from.
        read: Those of them that are read: selected, or chosen.
    """

    values: tuple[Value, ...]
    read: tuple[Value, ...]


class ReadsNumbersError(CompileError):
    """A number computed from values that are not all numbers: they have to be read as numbers first.

    Attributes:
        averaged: What it is made of.
    """

    def __init__(self, node: HeldNode, averaged: Averaged) -> None:
        super().__init__(f"{node.name!r} reads values that are not numbers.", node.expr)
        self.averaged = averaged


def make_domain(node: HeldNode, values: Iterable[Value], is_partial: bool, max_values: float = math.inf) -> Domain:
    """The domain of some values, in the order of the node's encoding; equal ones are one, exactly.

    Raises:
        CompileError: If there are none or too many, or as numbers they cannot be held (mostly a ValuesError).
    """
    by_key: dict[tuple[Any, ...], Value] = {}
    for value in values:
        held = held_number(node, value) if node.encoding is Encoding.NUMERICAL else value
        by_key.setdefault(value_key(held), held)
        if len(by_key) > max_values:
            raise ValuesError(
                f"{node.name!r} can take more than {max_values:,} values. Reduce the vocabulary or "
                "max_len, round the values, or raise max_values of CompileLimits.",
                node.expr,
            )
    if not by_key:
        raise CompileError(f"{node.name!r} is undefined whatever the input.", node.expr)
    if node.encoding is not Encoding.NUMERICAL:
        return Domain(tuple(by_key.values()), is_partial)
    return Domain(tuple(sorted(by_key.values())), is_partial)


def held_number(node: HeldNode, value: Value) -> Value:
    """The number that a value is held as.

    Raises:
        NotANumberError: If it is none.
        PrecisionError: If it is too large for any weight.
    """
    if not isinstance(value, bool | int | float | Fraction):
        message = (
            f"{node.name.removesuffix(' as numerical')!r} is encoded as a number by numerical(...), but can be "
            f"{value!r}. Remove numerical(...), or use categorical(...) instead."
        )
        raise NotANumberError(message, node, value)
    number = as_number(value)
    try:
        is_finite = abs(float(number)) <= LARGEST
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise PrecisionError(f"{node.name!r} can be {value}, which no weight can hold. Rescale it.", node.expr)
    return number


def coder(node: HeldNode, domain: Domain) -> Callable[[Value], int]:
    """The code of a value of the domain."""
    codes = domain.codes()
    if node.encoding is Encoding.NUMERICAL:
        return lambda value: codes[value_key(as_number(value))]
    return lambda value: codes[value_key(value)]
