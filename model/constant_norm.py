"""Directions that make layer norm divide by a number known in advance, so that weights can undo it.

Four directions stand behind a model's own. One holds minus the sum of all others, so the mean is zero. Two hold
a constant and its opposite, so large that the norm hardly depends on the rest. Layer norm then divides by a known
number, and its scale multiplies by it. The mean is off by rounding, in all directions alike. Nothing is written to
the fourth, so it holds this error alone; it is taken off whatever is read.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from rasplens.model.forward import LAYER_NORM_EPSILON

CONSTANT: Final = 500.0
"""The constant, in lengths of the longest residual stream, which then changes the norm by a millionth."""

GAIN: Final = 1000.0
"""What pre-activations are multiplied by, and divided by afterwards: so far from zero, GELU is ReLU."""

N_MORE: Final = 4
"""How many directions there are besides a model's own."""


@dataclass(frozen=True, eq=False)
class Readout:
    """The weights that read logits from the final residual stream.

    Attributes:
        weight: `[d_model, logit]`.
        bias: `[logit]`.
    """

    weight: Float[np.ndarray, "d_model logit"]
    bias: Float[np.ndarray, " logit"]


@dataclass(frozen=True)
class ConstantNorm:
    """A residual stream with such directions.

    Attributes:
        d_model: How many directions the model has.
        width: How many the stream has.
        constant: What the constant direction holds.
        first: The place of the model's first direction; the four are behind its last.
    """

    d_model: int
    width: int
    constant: float
    first: int = 0

    @property
    def divisor(self) -> float:
        """The number that layer norm divides by."""
        return float(np.sqrt(2 * self.constant**2 / self.width + LAYER_NORM_EPSILON))

    @property
    def constant_direction(self) -> Float[np.ndarray, " width"]:
        """The constant and its opposite, in their two directions."""
        found = np.zeros(self.width)
        found[self._behind + 1], found[self._behind + 2] = self.constant, -self.constant
        return found

    @property
    def reads_one(self) -> Float[np.ndarray, " width"]:
        """The vector that reads 1 from the constant, whatever the mean is off by."""
        found = np.zeros(self.width)
        found[self._behind + 1], found[self._behind + 3] = 1 / self.constant, -1 / self.constant
        return found

    def written(self, array: Float[np.ndarray, "*_ d_model"]) -> Float[np.ndarray, "*_ width"]:
        """Vectors of the model in the stream, so that all directions add up to zero."""
        found = np.zeros((*array.shape[:-1], self.width))
        found[..., self.first : self._behind], found[..., self._behind] = array, -array.sum(axis=-1)
        return found

    def read(self, array: Float[np.ndarray, "d_model n"]) -> Float[np.ndarray, "width n"]:
        """Weights that read the model's directions of the stream, less what all directions share."""
        found = np.zeros((self.width, array.shape[1]))
        found[self.first : self._behind], found[self._behind + 3] = array, -array.sum(axis=0)
        return found

    @property
    def _behind(self) -> int:
        """The first of the four directions."""
        return self.first + self.d_model
