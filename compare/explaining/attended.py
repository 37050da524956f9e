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

    @cached_property
    def _total(self) -> Float[np.ndarray, "input row"]:
        return np.asarray(self.attention.sum(axis=2))

    @cached_property
    def _own(self) -> Float[np.ndarray, "input row key"]:
        """A start token left out."""
        return np.asarray(self.attention / np.maximum(self._total, 1e-6)[:, :, None])

    @cached_property
    def _inside(self) -> Float[np.ndarray, "number input row key"]:
        """By the number of selected keys, what a selected key adds to the divergence of its row."""
        found = []
        for number in range(1, self.attention.shape[2] + 1):
            uniform = 1 / number
            middle = (self._own + uniform) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                own = np.where(self._own > 0, self._own * np.log2(self._own / middle), 0)
            found.append(((own + uniform * np.log2(uniform / middle)) / 2).astype(np.float32))
        return np.stack(found)

    def bits(self, matrix: Matrix) -> float:
        """The Jensen–Shannon divergence of attention from uniform attention over what is selected, the mean.

        Where nothing is selected, a start token has to get all of it; where something is, not all.
        """
        chosen = matrix[:, self.rows]
        n: Int[np.ndarray, "input row"] = chosen.sum(axis=2)
        inputs, rows = np.ogrid[: n.shape[0], : n.shape[1]]
        inside = np.einsum("irk,irk->ir", self._inside[np.maximum(n, 1) - 1, inputs, rows], chosen)
        both = inside + self._outside(chosen) / 2
        return self._mean(np.where(n > 0, np.where(self._total < UNREAD, FAR, both), FAR * self._total))

    def least_bits(self, matrix: Matrix) -> float:
        """What a selector of some of these keys costs at least: attention on others is not described."""
        outside = self._outside(matrix[:, self.rows]) / 2
        return self._mean(np.minimum(outside, FAR * self._total))

    def _outside(self, chosen: Bool[np.ndarray, "input row key"]) -> Float[np.ndarray, "input row"]:
        return np.asarray(np.maximum(1 - np.einsum("irk,irk->ir", self._own, chosen), 0))

    def _mean(self, bits: Float[np.ndarray, "input row"]) -> float:
        return float(bits.mean(axis=0) @ self.weights)
