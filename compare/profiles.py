"""The ablation profiles of both models side by side: do the same edges matter?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

PERMUTATIONS = 1_000

ROUNDING = 1e-9
"""Correlations that differ by less are tied: sparse profiles have many permutations that change nothing."""


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


def edge_profile(effects: pd.DataFrame, way: str) -> pd.Series:
    """The effect of each (query, key), the largest over layers."""
    return effects.groupby(["query", "key"])[way].max()


def correlate(compiled: pd.DataFrame, learned: pd.DataFrame, way: str, seed: int) -> Correlation | None:
    """The rank correlation of two edge tables; None if either is constant, which says nothing."""
    both = pd.concat({"compiled": edge_profile(compiled, way), "learned": edge_profile(learned, way)}, axis=1)
    both = both.fillna(0.0).sort_index()
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
