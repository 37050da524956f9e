"""How the map of a compression is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from rasplens.errors import RaspLensError
from rasplens.learned.intervals import COUNT, DECAY, NOT_NEGATIVE, POSITIVE, is_within
from rasplens.learned.optimisation import check_optimisation

OutputLoss = Literal["cross_entropy", "squared_error"]
"""The loss of the answers: of classes, or of numbers."""

CROSS_ENTROPY: Final = "cross_entropy"
SQUARED_ERROR: Final = "squared_error"


@dataclass(frozen=True)
class CompressionRecipe:
    """AdamW on the one map; the learning rate rises and falls linearly, and then stays.

    Attributes:
        steps: Of the optimiser.
        batch_size: Sequences per step.
        learning_rate: The highest.
        final_learning_rate: From the end of the decay on.
        warmup: Steps in which the learning rate rises to that. Without any, the first steps, as large as they can
            be, lead away from a map that is good already.
        decay: The share of the steps in which the learning rate falls.
        weight_decay: AdamW's.
        b1: AdamW's decay of the first moment.
        b2: Of the second.
        starts: How many first maps are tried. The one with the least loss after `trial` steps goes on; where some
            are tried at a smaller rate, the best of those does too, and the one that ends better is returned.
        fitted: How many of the starts, the last ones, begin from `fitted_map` instead of at random.
        rates: The shares of the learning rate that those are tried with, in turn. Programs with steep neurons need
            a small one: a large one leads away even from a map that is exact.
        trial: The steps after which it is chosen.
        layer_weight: The weight of the match of every layer's output, beside 1 for the loss of the answers.
        output_loss: `"cross_entropy"` or `"squared_error"`; by default what fits the output's encoding.

    Raises:
        RaspLensError: If a number is out of range.
    """

    steps: int
    batch_size: int
    learning_rate: float
    final_learning_rate: float
    warmup: int = 0
    decay: float = 1.0
    weight_decay: float = 0.0
    b1: float = 0.9
    b2: float = 0.99
    starts: int = 1
    fitted: int = 0
    rates: tuple[float, ...] = (1.0,)
    trial: int = 1_000
    layer_weight: float = 1.0
    output_loss: OutputLoss | None = None

    def __post_init__(self) -> None:
        if self.output_loss not in (None, CROSS_ENTROPY, SQUARED_ERROR):
            raise RaspLensError(
                f'output_loss must be "{CROSS_ENTROPY}" or "{SQUARED_ERROR}"; got {self.output_loss!r}.'
            )
        check_optimisation(
            self,
            **dict.fromkeys(("starts", "trial"), COUNT),
            **dict.fromkeys(("fitted", "layer_weight"), NOT_NEGATIVE),
            final_learning_rate=POSITIVE,
            b1=DECAY,
            decay="(0, 1]",
        )
        if not self.final_learning_rate <= self.learning_rate:
            raise RaspLensError(
                f"final_learning_rate must be at most learning_rate={self.learning_rate}; got "
                f"{self.final_learning_rate}."
            )
        if self.starts > 1 and not self.trial <= self.steps:
            raise RaspLensError(f"trial must be from 1 to steps={self.steps}; got {self.trial}.")
        if not self.fitted <= self.starts:
            raise RaspLensError(f"fitted must be from 0 to starts={self.starts}; got {self.fitted}.")
        if not 1 <= len(self.rates) <= self.starts or not all(is_within(rate, "(0, 1]") for rate in self.rates):
            raise RaspLensError(
                f"rates must be 1 to starts={self.starts} numbers, each above 0 and at most 1; got {self.rates}."
            )

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "CompressionRecipe":
        """The recipe whose fields were written as JSON values."""
        return cls(**{**fields, "rates": tuple(fields.get("rates", (1.0,)))})  # older files have no rates

    @property
    def heats(self) -> tuple[tuple[int, ...], ...]:
        """The starts that are chosen from: those at the full learning rate, and those at a smaller one."""
        full = tuple(start for start in range(self.starts) if self.rate(start) == 1)
        return tuple(heat for heat in (full, tuple(sorted({*range(self.starts)} - {*full}))) if heat)

    def rate(self, start: int) -> float:
        """The share of the learning rate that a start is tried with."""
        return self.rates[start % len(self.rates)]


_FAST_RATES = (1.0, 1.0, 1.0, 1.0, 0.1, 0.01, 0.001)

RECIPES = {
    # Lindner et al. 2023, appendix E.
    "paper": CompressionRecipe(300_000, 256, 1e-3, 1e-6, decay=0.5, weight_decay=0.1),
    "fast": CompressionRecipe(
        5_500, 128, 1e-2, 1e-5, warmup=200, weight_decay=0.1, starts=7, fitted=4, rates=_FAST_RATES, trial=500
    ),
}


def get_recipe(name: str) -> CompressionRecipe:
    """A recipe by its name.

    Raises:
        RaspLensError: If there is none of that name.
    """
    if name not in RECIPES:
        raise RaspLensError(f"There is no compression recipe {name!r}. The recipes are {', '.join(RECIPES)}.")
    return RECIPES[name]
