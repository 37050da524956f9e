"""The base class of errors that a user can fix: their messages say what was wrong and what to do."""

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any


class RaspLensError(ValueError):
    """An error that the user can fix; the message says how, in one line.

    The command line prints the message alone and ends with exit code 2. Any other exception is a bug in RASPLens,
    and shows its traceback.
    """


def expect(value: Any, kind: Any, what: str) -> None:
    """Raises unless an argument is of a kind; mostly, arguments were given in another order.

    Args:
        value: The argument.
        kind: What it has to be, as `isinstance` takes it.
        what: What it must be and how to make one: a sentence without its full stop.

    Raises:
        RaspLensError: With the sentence, and what was got instead.
    """
    if not isinstance(value, kind):
        raise RaspLensError(f"{what}; got {type(value).__name__} {reprlib.repr(value)}.")


def meant(name: Any, known: Iterable[str]) -> str:
    """After an unknown name, the question whether one that is nearly the same was meant; empty without any."""
    if not isinstance(name, str):
        return ""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
