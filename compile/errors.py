"""The errors and warnings of the compiler."""

from typing import Any

from rasplens.errors import RaspLensError


class CompileError(RaspLensError):
    """A program that cannot be compiled to something right.

    Attributes:
        node: The expression at fault, where there is one.
    """

    def __init__(self, message: str, node: Any = None) -> None:
        super().__init__(message)
        self.node = node


class PrecisionError(CompileError):
    """A number whose values float32 cannot hold apart."""


class PrecisionWarning(UserWarning):
    """A number is held with one direction a value, because float32 cannot hold its values apart."""


class CausalWarning(UserWarning):
    """A program that was compiled to see only the past says something else than if it saw everything."""


class RaspTextError(RaspLensError):
    """A text that is no RASP program: file, line and column, what is wrong, and the line with a caret below it."""


class UndefinedValue(RaspLensError):  # noqa: N818 - RASP's own word for it
    """An input on which a program is undefined, such as the mean of two different words."""
