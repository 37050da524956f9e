"""The kinds of values that a text computes with."""

from __future__ import annotations

import reprlib
from typing import Any

from rasplens.compile import rasp
from rasplens.compile.rasp_text.names import Function

KINDS = (
    (rasp.Selector, "a selector"), (rasp.SOp, "an s-op"), (list, "a list"), (dict, "a dict"),
    (Function, "a function"),
)  # fmt: skip
"""How kinds of values are called in messages."""


def is_static(value: Any) -> bool:
    """Whether a value is known before there is an input."""
    return not isinstance(value, rasp.RASPExpr)


def is_atom(value: Any) -> bool:
    """Whether a value is a number, a string or a truth value."""
    return isinstance(value, (bool, int, float, str))


def kind_of(value: Any) -> str:
    """A value in the words of a message: constants as they are written, cut where they are long."""
    named = next((name for kind, name in KINDS if isinstance(value, kind)), None)
    return named or ("a function" if callable(value) else reprlib.repr(value))
