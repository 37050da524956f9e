"""AdamW as every recipe says it: one name, one interval and one meaning for each of its settings.

Recipes have these fields of their own and do not hold an optimisation: a recipe's file stays flat, and
`replace(recipe, steps=500)` says all there is to say.
"""

from typing import Any, Protocol, runtime_checkable

from rasplens.errors import RaspLensError
from rasplens.learned.intervals import COUNT, DECAY, NOT_NEGATIVE, POSITIVE, check_intervals

INTERVALS = {
    "steps": COUNT,
    "batch_size": COUNT,
    "learning_rate": POSITIVE,
    "weight_decay": NOT_NEGATIVE,
    "b2": DECAY,
    "warmup": NOT_NEGATIVE,
}


@runtime_checkable
class Optimisation(Protocol):
    """The settings that every recipe has."""

    @property
    def steps(self) -> int:
        """Of AdamW."""

    @property
    def batch_size(self) -> int:
        """Inputs per step."""

    @property
    def learning_rate(self) -> float:
        """Its peak."""

    @property
    def weight_decay(self) -> float:
        """Decoupled, on every weight."""

    @property
    def b2(self) -> float:
        """Decay of the second moment."""

    @property
    def warmup(self) -> int:
        """Steps in which the rate rises linearly."""


def check_optimisation(recipe: Optimisation, **intervals: Any) -> None:
    """Raises unless a recipe can be trained by.

    Args:
        recipe: A dataclass.
        intervals: Those of the numbers that only this kind of recipe has; see `check_intervals`.

    Raises:
        RaspLensError: If a number is outside its interval, or the warm-up is not shorter than the steps.
    """
    check_intervals(recipe, **INTERVALS, **intervals)
    if not recipe.warmup < recipe.steps:
        raise RaspLensError(f"The warm-up must be shorter than the {recipe.steps} steps; got {recipe.warmup}.")
