"""How well scores tell the edges of a circuit from others, and how faithful the circuits are that they choose.

Overlap with a known circuit is not faithfulness (Hanna et al. 2024, arXiv 2403.17806): both are measured.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.discovery.areas import precision_area, roc_area, stairs_area, with_interval
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.compare.discovery.protocol import Scoring
from rasplens.errors import RaspLensError
from rasplens.model.random_streams import rng

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares of edges kept at which faithfulness is measured, as in MIB (Mueller et al. 2025, arXiv 2504.13151)."""

N_ORDERS = 10
"""Number of random orders of tied edges over which faithfulness is averaged."""


@dataclass(frozen=True)
class MethodScore:
    """How a method did on a model.

    Attributes:
        auroc: Area under the ROC curve; NaN if all edges are in the circuit, or none.
        auroc_low: The lower end of its 95 % interval: bootstrap (percentiles) over edges, those of the circuit and
            the others each by themselves.
        auroc_high: The upper end.
        average_precision: Area under precision over recall; NaN as for `auroc`.
        average_precision_low: The lower end of its interval, as for `auroc`.
        average_precision_high: The upper end.
        base_rate: The share of edges in the circuit, which is a random method's average precision.
        cpr: Area under faithfulness over the share of edges kept: 1 is best, larger if less than everything does
            better than everything.
        cmd: Area under its distance from 1: 0 is best.
        decoys: The share of edges to and from decoys that are ranked below all edges of the circuit but for a
            tenth; NaN without decoys.
        n_edges: Edges that were scored.
        n_unscored: Edges that the method gives no score: they come last among these, or are left out of them.
    """

    auroc: float
    auroc_low: float
    auroc_high: float
    average_precision: float
    average_precision_low: float
    average_precision_high: float
    base_rate: float
    cpr: float
    cmd: float
    decoys: float
    n_edges: int
    n_unscored: int


def score_edges(
    problem: Problem,
    scores: Scores,
    truth: Collection[str],
    decoys: Collection[str] = (),
    unknown: Collection[str] = (),
    scoring: Scoring = Scoring(),
) -> MethodScore:
    """How scores do. Those below the floor count as zero; no order among ties helps or harms.

    Args:
        problem: The model, and what counts as damage.
        scores: For each edge, NaN for those without a score.
        truth: The edges of the circuit.
        decoys: Nodes that are copies of ones in the circuit and that nothing reads.
        unknown: Edges of which it is not known whether they are in the circuit. They are not scored.
        scoring: Which edges count, and how.

    Raises:
        RaspLensError: If there is not one score for each edge, the truth names another edge, or none is left to
            be scored.
    """
    graph, protocol = problem.graph, problem.protocol
    if np.shape(scores) != (len(graph.edges),):
        raise RaspLensError(
            f"A method must give one score for each of the model's {len(graph.edges)} edges; got scores of shape "
            f"{np.shape(scores)}."
        )
    above = _above_floor(np.asarray(scores, dtype=float), scoring.floor)
    ranked = np.abs(above) if protocol.absolute else above
    in_circuit, is_scored = graph.mask_of(truth), ~np.isnan(ranked)
    counted = ~graph.mask_of(unknown)
    if scoring.embeddings == "out":
        counted &= ~graph.from_embeddings
    if scoring.embeddings == "one":
        counted &= ~(graph.from_embeddings & graph.into_logits)
    if not scoring.logits:
        counted &= ~graph.into_logits
    lowest = np.min(ranked[is_scored], initial=0.0) - 1
    filled = np.where(is_scored, ranked, lowest)
    merged = graph.merged(heads=scoring.heads == "whole", embeddings=scoring.embeddings == "one")
    groups = [np.flatnonzero(counted & (merged == one)) for one in np.unique(merged[counted])]
    n_unscored = sum(not is_scored[group].any() for group in groups)
    if scoring.unscored == "out":
        groups = [group for group in groups if is_scored[group].any()]
    if not groups:
        raise RaspLensError("No edge can be scored: for no edge is it known whether it is in the circuit.")
    own, labels, at_decoys = (
        np.array([values[group].max() for group in groups], dtype=values.dtype)
        for values in (filled, in_circuit, graph.touching(decoys))
    )
    area = roc_area if scoring.curve == "whole" else stairs_area
    (auroc, auroc_low, auroc_high), (precision, precision_low, precision_high) = (
        with_interval(one, own[labels], own[~labels], protocol.seed) for one in (area, precision_area)
    )
    cpr, cmd = faithfulness(problem, filled)
    return MethodScore(
        auroc=auroc,
        auroc_low=auroc_low,
        auroc_high=auroc_high,
        average_precision=precision,
        average_precision_low=precision_low,
        average_precision_high=precision_high,
        base_rate=float(labels.mean()),
        cpr=cpr,
        cmd=cmd,
        decoys=_decoys_below(own, labels, at_decoys),
        n_edges=len(own),
        n_unscored=n_unscored,
    )


def faithfulness(problem: Problem, ranked: Scores) -> tuple[float, float]:
    """CPR and CMD of the circuits of the edges with the largest scores, the mean over random orders of ties.

    With m the damage of ablating all edges but those of a circuit, its faithfulness is
    `(m(none) - m(circuit)) / (m(none) - m(all))`.
    """
    n = len(ranked)
    kept = np.array([0, *(round(share * n) for share in SHARES)])
    places = _places_in_random_orders(ranked, problem.protocol.seed)
    is_ablated = places[:, None, :] >= kept[:, None]
    distinct, which = np.unique(is_ablated.reshape(-1, n), axis=0, return_inverse=True)
    found = problem.damages(distinct.astype(np.float32)).mean(axis=1)[which].reshape(len(places), len(kept))
    nothing, everything = float(found[0, 0]), float(found[0, -1])
    if not abs(nothing - everything) > 1e-9:
        return float("nan"), float("nan")
    faithful = (nothing - found[:, 1:]) / (nothing - everything)
    cpr, cmd = (np.trapezoid(values, SHARES, axis=1).mean() for values in (faithful, np.abs(1 - faithful)))
    return float(cpr), float(cmd)


def _places_in_random_orders(ranked: Scores, seed: int) -> Int[np.ndarray, "order edge"]:
    """Each edge's place behind those with larger scores, with ties in `N_ORDERS` random orders."""
    random, n = rng(seed, "orders of ties"), len(ranked)
    orders = [np.lexsort((random.permutation(n), -ranked)) for _ in range(N_ORDERS)]
    return np.stack([np.argsort(order) for order in orders])


def _above_floor(scores: Scores, floor: float) -> Scores:
    """Scores, with zero for those that are less than a share of the largest, by size."""
    sizes = np.abs(scores)
    return np.where(sizes < floor * np.nanmax(sizes, initial=0.0), 0.0, scores)


def _decoys_below(
    scores: Scores, labels: Bool[np.ndarray, " edge"], at_decoys: Bool[np.ndarray, " edge"]
) -> float:
    if not at_decoys.any() or not labels.any():
        return float("nan")
    return float((scores[at_decoys] < np.quantile(scores[labels], 0.1)).mean())
