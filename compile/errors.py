"""The errors and warnings of the compiler."""

from typing import Any


class CompileError(ValueError):
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


class UndefinedValue(ValueError):  # noqa: N818 - RASP's own word for it
    """An input on which a program is undefined, such as the mean of two different words."""
