"""How the ablation profiles of two models agree: over edges, and over the positions of matched heads."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.stats import hypergeom, permutation_test

from rasplens.compare.evidence.ablation.measurement import METHODS, Effects, Method
from rasplens.model import random_streams

SHUFFLES = 50
"""Permutations behind the control of the cosine; few, since it is computed for every bootstrap sample."""

ROUNDING = 1e-9
"""Correlations that differ by less count as tied: many permutations of sparse profiles change nothing."""

CRITICAL = 0.01
"""An edge is critical if ablating it drops token accuracy by more than this."""


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


def edge_profile(effects: pd.DataFrame, method: Method) -> pd.Series:
    """The effect of each (query, key), the largest over layers."""
    return effects.groupby(["query", "key"])[method].max()


def profiles(compiled: pd.DataFrame, learned: pd.DataFrame, method: Method) -> pd.DataFrame:
    """Both profiles over the edges that either model attends to; an edge without attention has no effect."""
    both = pd.concat(
        {"compiled": edge_profile(compiled, method), "learned": edge_profile(learned, method)}, axis=1
    )
    return both.fillna(0.0).sort_index()


def correlate(
    compiled: pd.DataFrame, learned: pd.DataFrame, method: Method, seed: int, permutations: int
) -> Correlation | None:
    """The rank correlation of two edge tables; None if either is constant, which says nothing."""
    both = profiles(compiled, learned, method)
    if len(both) < 3 or (both.nunique() < 2).any():
        return None
    rng = random_streams.rng(seed, "ablation profiles")
    queries = both.index.get_level_values("query").to_numpy()
    compiled_ranks, learned_ranks = (both[side].rank().to_numpy() for side in ("compiled", "learned"))
    rho = float(np.corrcoef(compiled_ranks, learned_ranks)[0, 1])
    null = np.empty(permutations)
    for i in range(permutations):
        order = np.lexsort((rng.random(len(queries)), queries))
        null[i] = np.corrcoef(compiled_ranks[order], learned_ranks)[0, 1]
    reached = int((null >= rho - ROUNDING).sum())
    return Correlation(rho, float(null.mean()), (1 + reached) / (1 + permutations), len(both))


MATCHED_COLUMNS = ("variable", "compiled", "learned", "method", "rho", "unmatched", "p", "n")


def matched_profiles(
    matched: pd.DataFrame, compiled: pd.DataFrame, learned: pd.DataFrame, seed: int, permutations: int
) -> pd.DataFrame:
    """How the ablation effects of matched heads correlate over positions.

    Args:
        matched: Pairs of a compiled and a learned head, from `head_similarities`.
        compiled: The compiled model's heads by position, from `head_position_effects`.
        learned: The learned model's.
        seed: Of the permutations.
        permutations: How many at most.

    Returns:
        One row per pair and method: `rho`, Spearman's over positions; `unmatched`, the mean of the same with the
        other learned heads (NaN if there are none that vary); `p` of rho, from permuted positions; `n` positions.
        Pairs of which one head has the same effect at every position have no row: no correlation is defined.
    """
    rows: list[dict[str, object]] = []
    for method in METHODS if len(matched) else ():
        ours, theirs = (
            frame.pivot(index="position", columns=["layer", "head"], values=method)
            for frame in (compiled, learned)
        )
        theirs = theirs.loc[:, theirs.nunique() > 1]
        for pair in matched.itertuples():
            first, second = (pair.compiled_layer, pair.compiled_head), (pair.layer, pair.head)
            if second not in theirs or ours[first].nunique() < 2:
                continue
            ranks = ours[first].rank()
            rho = theirs.rank().corrwith(ranks)
            others = rho.drop([second])
            rows.append(
                {
                    "variable": pair.variable,
                    "compiled": f"L{first[0]}H{first[1]}",
                    "learned": f"L{second[0]}H{second[1]}",
                    "method": method,
                    "rho": rho[second],
                    "unmatched": others.mean(),
                    "p": _permutation_p(ranks.to_numpy(), theirs[second].rank().to_numpy(), seed, permutations),
                    "n": len(ours),
                }
            )
    return pd.DataFrame(rows, columns=list(MATCHED_COLUMNS))


def critical_overlap(compiled: pd.DataFrame, learned: pd.DataFrame, method: Method) -> Overlap:
    """The critical edges of both models, of those that either attends to."""
    critical = profiles(compiled, learned, method) > CRITICAL
    first, second = (int(critical[side].sum()) for side in ("compiled", "learned"))
    shared, n = int(critical.all(axis=1).sum()), len(critical)
    p = float(hypergeom.sf(shared - 1, n, first, second)) if n else 1.0
    return Overlap(shared, int(critical.any(axis=1).sum()), first * second / max(1, n), p)


def resampled_similarity(
    compiled: Effects,
    learned: Effects,
    method: Method,
    weights: Float[np.ndarray, "draw input"],
    visible: Bool[np.ndarray, "query key"],
    seed: int,
) -> Float[np.ndarray, "2 draw"]:
    """The cosine of the two profiles, with every input weighted anew, and its control.

    Unlike a rank correlation it does not depend on how many edges have no effect at all. The control is its
    mean after the keys within each query's row were permuted, among all that the task lets the query see: what
    is explained by *which rows* matter. Both are NaN where a profile is all zero.
    """
    index = pd.MultiIndex.from_arrays(np.argwhere(visible).T, names=["query", "key"])
    first, second = (_weighted_profile(effects, method, weights, index) for effects in (compiled, learned))
    rng, queries = random_streams.rng(seed, "ablation edge controls"), index.get_level_values("query").to_numpy()
    orders = [np.lexsort((rng.random(len(queries)), queries)) for _ in range(SHUFFLES)]
    return np.stack([_cosine(first, second), np.mean([_cosine(first, second[order]) for order in orders], axis=0)])


def _permutation_p(
    first: Float[np.ndarray, " position"], second: Float[np.ndarray, " position"], seed: int, permutations: int
) -> float:
    """How many permutations correlate as much."""
    found = permutation_test(
        (first,),
        lambda ranks: float(np.corrcoef(ranks, second)[0, 1]),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=permutations,
        rng=random_streams.rng(seed, "permutation test"),
    )
    return float(found.pvalue)


def _weighted_profile(
    effects: Effects, method: Method, weights: np.ndarray, index: pd.MultiIndex
) -> Float[np.ndarray, "edge draw"]:
    drops, keys = effects.drops[method], ["query", "key"]
    weights = weights[:, : drops.shape[1]]
    values = drops @ weights.T / np.maximum(1e-12, weights.sum(axis=1))
    profile = np.zeros((len(index), len(weights)))
    np.maximum.at(profile, index.get_indexer(pd.MultiIndex.from_frame(effects.table[keys])), values)
    return profile


def _cosine(first: np.ndarray, second: np.ndarray) -> Float[np.ndarray, " draw"]:
    sizes = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
    return np.where(sizes > 0, (first * second).sum(axis=0) / np.where(sizes > 0, sizes, 1), np.nan)
