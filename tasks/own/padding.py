"""Inputs of several lengths in one: the shorter ones are filled up with a token that says nothing."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from rasplens.compile.rasp import Value
from rasplens.compile.rasp.values import value_key
from rasplens.errors import RaspLensError

Side = Literal["right", "left", "both"]
"""Where padding goes: behind the tokens, before them, or on both sides, divided at random."""

PADDING = "PAD"
"""The default padding token."""


def check_side(pad: str) -> None:
    """Asks for a side.

    Raises:
        RaspLensError: If it is none.
    """
    if pad not in get_args(Side):
        raise RaspLensError(f'pad must be "right", "left" or "both"; got {pad!r}.')


def padded(
    tokens: Sequence[Value], length: int, padding: Value, pad: Side, rng: np.random.Generator
) -> list[Value]:
    """Tokens, filled up to a length.

    Raises:
        RaspLensError: If the padding stands among them.
    """
    if value_key(padding) in map(value_key, tokens):
        raise RaspLensError(f"The padding {padding!r} is a token of the input {list(tokens)}. Choose another.")
    missing = length - len(tokens)
    before = {"right": 0, "left": missing}.get(pad)
    before = int(rng.integers(missing + 1)) if before is None else before
    return [padding] * before + list(tokens) + [padding] * (missing - before)


def unpadded(tokens: Sequence[Value], padding: Value) -> tuple[int, list[Value]]:
    """Where the tokens of an input begin, and what they are."""
    is_own = [value_key(token) != value_key(padding) for token in tokens]
    if not any(is_own):
        return 0, []
    first, last = is_own.index(True), len(is_own) - is_own[::-1].index(True)
    return first, list(tokens[first:last])
