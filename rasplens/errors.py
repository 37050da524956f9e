"""The user's mistakes: what every error derives from that says what was wrong and what to do."""

import reprlib
from typing import Any


class RaspLensError(ValueError):
    """Something that the user can mend; the message says what, in one line.

    The command line prints it alone and ends with exit code 2. Any other exception is a fault of RASPLens, and
    shows its traceback.
    """


def expect(value: Any, kind: Any, what: str) -> None:
    """Raises unless an argument is of a kind: arguments in another order, mostly.

    Args:
        value: The argument.
        kind: What it has to be, as `isinstance` takes it.
        what: What it should be and how one comes by it, a sentence without its point.

    Raises:
        RaspLensError: With the sentence, and what was got instead.
    """
    if not isinstance(value, kind):
        raise RaspLensError(f"{what}; got {type(value).__name__} {reprlib.repr(value)}.")
