"""How far a selector describes where heads attend."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

FAR = 0.5
"""Bits that a row costs where heads attend and the selector selects nothing, or the reverse."""

UNREAD = 0.05
"""Heads that give a row no more attention than this, beside a start token, select nothing there."""

Matrix = Bool[np.ndarray, "input query key"]


@dataclass(frozen=True, eq=False)
class Attended:
    """The attention of some heads at the queries that matter.

    Attributes:
        rows: The queries that matter.
        attention: Of each key of the task; a start token gets the rest.
        weights: How much each of these queries counts; together 1.
    """

    rows: list[int]
    attention: Float[np.ndarray, "input row key"]
    weights: Float[np.ndarray, " row"]

    def of(self, inputs: Bool[np.ndarray, " input"]) -> "Attended":
        """Return the attention on some of the inputs."""
        return Attended(self.rows, self.attention[inputs], self.weights)

    @cached_property
    def _total(self) -> Float[np.ndarray, "input row"]:
        return np.asarray(self.attention.sum(axis=2))

    @cached_property
    def _own(self) -> Float[np.ndarray, "input row key"]:
        """A start token left out."""
        return np.asarray(self.attention / np.maximum(self._total, 1e-6)[:, :, None])

    @cached_property
    def _alone(self) -> Float[np.ndarray, "input row key"]:
        """The part of the divergence that a key's attention alone decides."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self._own > 0, self._own * (1 + np.log2(self._own)), 0)

    def bits(self, matrix: Matrix) -> float:
        """The Jensen–Shannon divergence of attention from uniform attention over what is selected, the mean.

        Where nothing is selected, a start token has to get all of it; where something is, not all.
        """
        chosen = matrix[:, self.rows]
        n: Int[np.ndarray, "input row"] = chosen.sum(axis=2)
        uniform = 1 / np.maximum(n, 1)
        both = self._own + uniform[:, :, None]
        inside = np.einsum("irk,irk->ir", self._alone - both * np.log2(both), chosen) + 1 + np.log2(uniform)
        divergence = (inside + self._outside(chosen)) / 2
        return self._mean(np.where(n > 0, np.where(self._total < UNREAD, FAR, divergence), FAR * self._total))

    def least_bits(self, matrix: Matrix) -> float:
        """What a selector of some of these keys costs at least: attention on others is not described."""
        outside = self._outside(matrix[:, self.rows]) / 2
        return self._mean(np.minimum(outside, FAR * self._total))

    def _outside(self, chosen: Bool[np.ndarray, "input row key"]) -> Float[np.ndarray, "input row"]:
        return np.asarray(np.maximum(1 - np.einsum("irk,irk->ir", self._own, chosen), 0))

    def _mean(self, bits: Float[np.ndarray, "input row"]) -> float:
        return float(bits.mean(axis=0) @ self.weights)
