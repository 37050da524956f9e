"""How much a text may ask for before it is refused: what it computes beforehand is small, or a mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rasplens.errors import RaspLensError

MOST_ITEMS = 10_000
"""The longest list, dict or string that is computed."""

MOST_BITS = 1_024
"""The largest whole number that is computed; larger ones are no floats."""

MOST_STEPS = 200_000
"""The parts of a text that are evaluated: those of loops and functions each time anew, and the items of lists."""

LONGEST_TEXT = 200_000
"""Characters of a text, or bytes of a file."""


@dataclass
class StepBudget:
    """The steps that a text may still take, with all that it loads."""

    left: int = MOST_STEPS

    def take(self, n: int = 1) -> None:
        """Takes some steps.

        Raises:
            RaspLensError: If there are not as many left.
        """
        self.left -= n
        if self.left < 0:
            raise RaspLensError(
                f"evaluating this takes more than {MOST_STEPS:,} steps. Loops and calls are expanded beforehand: "
                "make lists shorter, or call functions less often."
            )

    def take_through(self, *values: Any) -> None:
        """Takes a step for every item of lists and dicts, and of those inside, as often as they stand there.

        Raises:
            RaspLensError: If there are not as many left.
        """
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if isinstance(value, (list, tuple, dict)):
                self.take(len(value))
                waiting += value.values() if isinstance(value, dict) else value


def bounded(value: Any) -> Any:
    """The value.

    Raises:
        RaspLensError: If it is too long or too large.
    """
    if isinstance(value, (str, list, tuple, dict)):
        check_items(len(value))
    if isinstance(value, int):
        check_bits(value.bit_length())
    return value


def check_items(n: int) -> None:
    """Raises where a list, dict or string would be too long.

    Raises:
        RaspLensError: If it has more than `MOST_ITEMS` items.
    """
    if n > MOST_ITEMS:
        raise RaspLensError(f"A list, dict or string of more than {MOST_ITEMS:,} items is too long.")


def check_bits(n: int) -> None:
    """Raises where a whole number would be too large.

    Raises:
        RaspLensError: If it has more than `MOST_BITS` bits.
    """
    if n > MOST_BITS:
        raise RaspLensError(f"A whole number of more than {MOST_BITS:,} bits is too large.")
