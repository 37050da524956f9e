"""How alike two residual streams are as a whole, hook point by hook point; descriptive only.

These indices move without any change of function (Davari et al. 2022, "Reliability of CKA") and with width and
the number of samples; so the debiased estimator is used, and each stands beside the same with inputs shuffled.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from rasplens.compare.pairing.pairing import Pairing
from rasplens.model import random_streams

KEPT = 0.99
"""Share of the variance of each stream that CCA keeps: the rest is noise that correlates by chance."""

LEAST_ROWS = 4
"""Smallest number of rows for which the unbiased estimator is defined."""

Rows = Float[np.ndarray, "row feature"]


@dataclass(frozen=True, eq=False)
class CentredStream:
    """A residual stream on some rows, about its mean, and what the indices are made of.

    Attributes:
        rows: Centred.
        kernel: The products of rows with each other, without those of a row with itself.
        directions: An orthonormal basis of the directions that hold `KEPT` of the variance, on each row.
    """

    rows: Rows
    kernel: Float[np.ndarray, "row row"]
    directions: Float[np.ndarray, "row direction"]

    def shuffled(self, order: Int[np.ndarray, " row"]) -> "CentredStream":
        """Return the stream with its rows in another order."""
        return CentredStream(self.rows[order], self.kernel[np.ix_(order, order)], self.directions[order])


def centred_stream(rows: Rows) -> CentredStream:
    """A stream about its mean."""
    rows = rows - rows.mean(axis=0)
    kernel = rows @ rows.T
    np.fill_diagonal(kernel, 0)
    return CentredStream(rows, kernel, _directions(rows))


def stream_similarity(pairing: Pairing, seed: int) -> pd.DataFrame:
    """The similarity of every hook point of the compiled model with every one of the learned model.

    Returns:
        Columns compiled, learned (hook points), cka (debiased, linear; Kornblith et al. 2019), cca (mean canonical
        correlation of the directions that hold 99 % of the variance), procrustes (distance after the best
        rotation, of streams scaled to size 1; 0 to 2), and each with inputs shuffled.
    """
    rng = random_streams.rng(seed, "subspace similarity")
    answers = list(pairing.task.loss_positions)
    rows = rng.permutation(pairing.n_inputs * len(answers))[: pairing.config.similarity_rows]
    order = rng.permutation(len(rows))
    sides = {
        side: {point: _at_rows(studied.residual(point)[:, answers], rows) for point in studied.residual_points}
        for side, studied in (("compiled", pairing.reference), ("learned", pairing.learned))
    }
    shuffled = {point: y.shuffled(order) for point, y in sides["learned"].items()}
    table = []
    for first, x in sides["compiled"].items():
        for second, y in sides["learned"].items():
            scores: dict[str, object] = {"compiled": first, "learned": second}
            for end, other in (("", y), ("_shuffled", shuffled[second])):
                scores |= {f"cka{end}": cka(x, other), f"cca{end}": cca(x, other)}
                scores |= {f"procrustes{end}": procrustes(x, other)}
            table.append(scores)
    return pd.DataFrame(table)


def _at_rows(stream: np.ndarray, rows: np.ndarray) -> CentredStream:
    return centred_stream(stream.reshape(-1, stream.shape[-1])[rows].astype(np.float64))


def cka(x: CentredStream, y: CentredStream) -> float:
    """Linear CKA by the unbiased HSIC estimator (Song et al. 2012, equation 5); may fall below 0.

    NaN for fewer than `LEAST_ROWS` rows.
    """
    if len(x.rows) < LEAST_ROWS:
        return float("nan")
    scale = np.sqrt(max(_hsic(x, x) * _hsic(y, y), 0.0))
    return float(_hsic(x, y) / scale) if scale > 0 else 0.0


def _hsic(x: CentredStream, y: CentredStream) -> float:
    n, k, l = len(x.rows), x.kernel, y.kernel  # noqa: E741 - the paper's letters
    ones = k.sum() * l.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k.sum(axis=0) @ l.sum(axis=0))
    return float(((k * l).sum() + ones) / (n * (n - 3)))


def cca(x: CentredStream, y: CentredStream) -> float:
    """The mean canonical correlation of the directions that hold `KEPT` of each side's variance."""
    if min(side.directions.shape[1] for side in (x, y)) == 0:
        return 0.0
    return float(np.linalg.svd(x.directions.T @ y.directions, compute_uv=False).mean())


def _directions(x: Rows) -> np.ndarray:
    left, sizes, _ = np.linalg.svd(x, full_matrices=False)
    share = np.cumsum(sizes**2) / max((sizes**2).sum(), 1e-300)
    return left[:, : int(np.searchsorted(share, KEPT)) + 1] if sizes.max(initial=0) > 1e-9 else left[:, :0]


def procrustes(x: CentredStream, y: CentredStream) -> float:
    """The squared distance of both, scaled to size 1, after the best rotation: 0 to 2.

    The best rotation leaves them as near as the sum of the singular values of their product says (Schoenemann
    1966, "A Generalized Solution of the Orthogonal Procrustes Problem").
    """
    size = max(float(np.linalg.norm(x.rows)) * float(np.linalg.norm(y.rows)), 1e-300)
    return max(0.0, float(2 - 2 * np.linalg.svd(x.rows.T @ y.rows, compute_uv=False).sum() / size))
