"""Areas under the curves of scores, each a function of the scores of edges inside of a circuit and outside.

The last axis holds the edges; the axes before it are resamples, all all at once, so intervals are cheap. For one
sample, the first two areas equal `roc_auc_score` and `average_precision_score` of scikit-learn. `axis` is always
the last one: scipy's bootstrap passes it.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.stats import bootstrap, rankdata

from rasplens.model.random_streams import rng

Inside = Float[np.ndarray, "*draw inside"]
Outside = Float[np.ndarray, "*draw outside"]
Area = Callable[[Inside, Outside, int], Float[np.ndarray, "*draw"]]

N_DRAWN = 200
"""Bootstrap resamples of the edges behind an interval."""

STAIRS = (0.0, 1e-5, 1e-4, 1e-3, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0, 10.0, 20.0, 50.0, 100.0)
"""Thresholds of the public code of InterpBench (Gupta et al. 2024, arXiv 2407.14494).

Between two points the curve goes right, then up; after the last point it goes right. It assumes nothing about
circuits between two thresholds, which Conmy et al. 2023 (arXiv 2304.14997) call pessimistic.
"""


def roc_area(inside: Inside, outside: Outside, axis: int = -1) -> Float[np.ndarray, "*draw"]:
    """Under the ROC curve: how often an edge inside is above one outside, ties counting half (Mann-Whitney)."""
    n, m = inside.shape[-1], outside.shape[-1]
    ranks = rankdata(np.concatenate([inside, outside], axis=-1), axis=-1)[..., :n]
    return np.asarray((ranks.sum(axis=-1) - n * (n + 1) / 2) / (n * m))


def precision_area(inside: Inside, outside: Outside, axis: int = -1) -> Float[np.ndarray, "*draw"]:
    """Average precision: of the edges that score at least as high as one inside, the share inside; the mean."""
    n = inside.shape[-1]
    above = rankdata(-np.concatenate([inside, outside], axis=-1), method="max", axis=-1)[..., :n]
    inside_above = rankdata(-inside, method="max", axis=-1)
    return np.asarray((inside_above / above).mean(axis=-1))


def stairs_area(inside: Inside, outside: Outside, axis: int = -1) -> Float[np.ndarray, "*draw"]:
    """Under the stairs below the points of the ROC curve at fixed thresholds."""
    true, false = (_shares_above(scores) for scores in (inside, outside))
    return np.asarray((np.diff(true, axis=-1) * (1 - false[..., 1:])).sum(axis=-1))


def _shares_above(scores: Float[np.ndarray, "*draw edge"]) -> Float[np.ndarray, "*draw threshold"]:
    """The share of edges from each threshold on, the highest first; before it none."""
    shares = [np.zeros(scores.shape[:-1]), *((scores >= least).mean(axis=-1) for least in STAIRS[::-1])]
    return np.stack(shares, axis=-1)


def with_interval(
    area: Area, inside: Float[np.ndarray, " inside"], outside: Float[np.ndarray, " outside"], seed: int
) -> tuple[float, float, float]:
    """An area, NaN if no edge is inside or none outside; its 95 % interval, if of each there are two."""
    fewest = min(len(inside), len(outside))
    if fewest < 2:
        return float(area(inside, outside, -1)) if fewest else math.nan, math.nan, math.nan
    drawn = rng(seed, "intervals of areas")
    found = bootstrap(
        (inside, outside), area, vectorized=True, method="percentile", n_resamples=N_DRAWN, rng=drawn
    )
    low, high = found.confidence_interval
    return float(area(inside, outside, -1)), float(low), float(high)
