"""How alike two residual streams are as a whole, hook point by hook point; descriptive, no evidence of its own.

These indices move without any change of function (Davari et al. 2022, "Reliability of CKA") and with width and
the number of samples; so the debiased estimator is used, and each stands beside the same with inputs shuffled.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.linalg import orthogonal_procrustes

from rasplens.compare.models.pairing import Pairing
from rasplens.model import random_streams

KEPT = 0.99
"""The share of variance that is kept of each stream for CCA: the rest is noise that correlates by chance."""

Rows = Float[np.ndarray, "row feature"]
Others = Float[np.ndarray, "row other"]


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
        side: {point: _rows(studied.residual(point)[:, answers], rows) for point in studied.residual_points}
        for side, studied in (("compiled", pairing.reference), ("learned", pairing.learned))
    }
    table = []
    for first, x in sides["compiled"].items():
        for second, y in sides["learned"].items():
            scores: dict[str, object] = {"compiled": first, "learned": second}
            for end, other in (("", y), ("_shuffled", y[order])):
                scores |= {f"cka{end}": cka(x, other), f"cca{end}": cca(x, other)}
                scores |= {f"procrustes{end}": procrustes(x, other)}
            table.append(scores)
    return pd.DataFrame(table)


def _rows(stream: np.ndarray, rows: np.ndarray) -> Rows:
    flat = stream.reshape(-1, stream.shape[-1])[rows].astype(np.float64)
    return flat - flat.mean(axis=0)


def cka(x: Rows, y: Others) -> float:
    """Linear CKA by the unbiased HSIC estimator (Song et al. 2012, equation 5); may fall below 0."""
    scale = np.sqrt(max(_hsic(x, x) * _hsic(y, y), 0.0))
    return float(_hsic(x, y) / scale) if scale > 0 else 0.0


def _hsic(x: Rows, y: Others) -> float:
    n = len(x)
    k, l = x @ x.T, y @ y.T  # noqa: E741 - the paper's letters
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    ones = k.sum() * l.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k.sum(axis=0) @ l.sum(axis=0))
    return float(((k * l).sum() + ones) / (n * (n - 3)))


def cca(x: Rows, y: Others) -> float:
    """The mean canonical correlation of the directions that hold `KEPT` of each side's variance."""
    bases = [_directions(side) for side in (x, y)]
    if min(basis.shape[1] for basis in bases) == 0:
        return 0.0
    return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).mean())


def _directions(x: Rows) -> np.ndarray:
    left, sizes, _ = np.linalg.svd(x, full_matrices=False)
    share = np.cumsum(sizes**2) / max((sizes**2).sum(), 1e-300)
    return left[:, : int(np.searchsorted(share, KEPT)) + 1] if sizes.max(initial=0) > 1e-9 else left[:, :0]


def procrustes(x: Rows, y: Others) -> float:
    """The squared distance of both, scaled to size 1, after the best rotation: 0 to 2."""
    width = max(x.shape[1], y.shape[1])
    scaled = [
        np.pad(side, ((0, 0), (0, width - side.shape[1]))) / max(np.linalg.norm(side), 1e-300) for side in (x, y)
    ]
    return max(0.0, float(2 - 2 * orthogonal_procrustes(*scaled)[1]))
