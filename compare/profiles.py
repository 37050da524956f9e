"""The ablation profiles of both models side by side: do the same edges matter?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import hypergeom

from rasplens.compare.ablation import Effects

PERMUTATIONS = 1_000

ROUNDING = 1e-9
"""Correlations that differ by less are tied: sparse profiles have many permutations that change nothing."""

CRITICAL = 0.01
"""The token accuracy that losing an edge costs at least, for it to be critical."""


@dataclass(frozen=True)
class Correlation:
    """A rank correlation beside its control.

    Attributes:
        rho: Spearman's, over the edges that either model attends to.
        within_rows: The mean of the same after permuting the keys within each query row: what is
            explained by *which rows* matter alone.
        p: The share of those permutations that reach `rho`.
        n: The number of edges.
    """

    rho: float
    within_rows: float
    p: float
    n: int


@dataclass(frozen=True)
class Overlap:
    """The critical edges that two models share.

    Attributes:
        shared: How many are critical in both.
        either: How many in one or the other.
        expected: How many would be shared by chance, given how many each has.
        p: How likely chance shares as many (hypergeometric).
    """

    shared: int
    either: int
    expected: float
    p: float


def edge_profile(effects: pd.DataFrame, way: str) -> pd.Series:
    """The effect of each (query, key), the largest over layers."""
    return effects.groupby(["query", "key"])[way].max()


def profiles(compiled: pd.DataFrame, learned: pd.DataFrame, way: str) -> pd.DataFrame:
    """Both profiles over the edges that either model attends to; an edge without attention is worth nothing."""
    both = pd.concat({"compiled": edge_profile(compiled, way), "learned": edge_profile(learned, way)}, axis=1)
    return both.fillna(0.0).sort_index()


def correlate(compiled: pd.DataFrame, learned: pd.DataFrame, way: str, seed: int) -> Correlation | None:
    """The rank correlation of two edge tables; None if either is constant, which says nothing."""
    both = profiles(compiled, learned, way)
    if len(both) < 3 or (both.nunique() < 2).any():
        return None
    rng = np.random.default_rng([seed, 4])
    queries = both.index.get_level_values("query").to_numpy()
    compiled_ranks, learned_ranks = (both[side].rank().to_numpy() for side in ("compiled", "learned"))
    rho = float(np.corrcoef(compiled_ranks, learned_ranks)[0, 1])
    null = np.empty(PERMUTATIONS)
    for i in range(PERMUTATIONS):
        order = np.lexsort((rng.random(len(queries)), queries))
        null[i] = np.corrcoef(compiled_ranks[order], learned_ranks)[0, 1]
    reached = int((null >= rho - ROUNDING).sum())
    return Correlation(rho, float(null.mean()), (1 + reached) / (1 + PERMUTATIONS), len(both))


def critical_overlap(compiled: pd.DataFrame, learned: pd.DataFrame, way: str) -> Overlap:
    """The critical edges of both models, of those that either attends to."""
    critical = profiles(compiled, learned, way) > CRITICAL
    first, second = (int(critical[side].sum()) for side in ("compiled", "learned"))
    shared, n = int(critical.all(axis=1).sum()), len(critical)
    p = float(hypergeom.sf(shared - 1, n, first, second)) if n else 1.0
    return Overlap(shared, int(critical.any(axis=1).sum()), first * second / max(1, n), p)


def resampled_similarity(
    compiled: Effects, learned: Effects, way: str, weights: Float[np.ndarray, "draw input"]
) -> Float[np.ndarray, " draw"]:
    """The cosine of the two profiles with every input weighted anew, in [-1, 1]; NaN where one is all zero.

    Unlike a rank correlation it does not depend on how many edges are worth nothing at all.
    """
    sums = []
    keys = ["query", "key"]
    pairs = pd.concat([compiled.table[keys], learned.table[keys]]).drop_duplicates()
    index = pd.MultiIndex.from_frame(pairs.sort_values(keys))
    for effects in (compiled, learned):
        lost = effects.lost[way]
        values = lost @ weights[:, : lost.shape[1]].T / np.maximum(1e-12, weights[:, : lost.shape[1]].sum(axis=1))
        best = np.zeros((len(index), len(weights)))
        places = index.get_indexer(pd.MultiIndex.from_frame(effects.table[keys]))
        np.maximum.at(best, places, values)
        sums.append(best)
    first, second = sums
    sizes = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
    return np.where(sizes > 0, (first * second).sum(axis=0) / np.where(sizes > 0, sizes, 1), np.nan)
