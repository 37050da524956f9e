"""Statistical tests of a circuit, with error rates that are measured.

Source: Shi et al. 2024, "Hypothesis Testing the Circuit Hypothesis in LLMs" (arXiv 2410.13032). There are five
criteria, each a null hypothesis. A circuit is *equivalent* to the model, and *independent* of what lies outside,
unless data speak against it. It is *minimal*, *sufficient* and *partially necessary* only if data speak for it.

Their public code tests equivalence on a mean difference, where the definition needs the share of inputs on
which the circuit does better, and it does not correct for how many tests are made. Here the share is tested,
ties counting half, and p-values are corrected by Holm's method over the five tests. A circuit is minimal if each
of its edges matters: the largest of their p-values is the circuit's, and needs no correction over edges (Berger
1982, "Multiparameter Hypothesis Testing and Acceptance Sampling": an intersection-union test).
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.distance import cdist
from scipy.stats import binom

from rasplens.compare.discovery.edge_graph import EMBED, LOGITS, POS_EMBED, EdgeGraph
from rasplens.compare.discovery.problem import NEED_LOGITS, Problem
from rasplens.errors import RaspLensError
from rasplens.model.random_streams import rng

MARGIN = 0.1
"""Largest distance from a half of the share of inputs on which an equivalent circuit does better."""

N_RANDOM = 499
"""Number of random circuits, and of permutations, that a test draws."""

TIE = 1e-4
"""Damages that differ by less count as equal: the difference is float32 rounding."""

MOST_PATHS = 200
"""Number of paths drawn for a random circuit before its last edges are drawn one by one."""

Circuits = Bool[np.ndarray, "circuit edge"]
"""Which edges each of several circuits has."""


@dataclass(frozen=True)
class Criterion:
    """A criterion that a circuit may meet or not.

    Attributes:
        name: Its name.
        met_unless_rejected: Whether it is its null hypothesis that the circuit meets it, or that it does not.
        met: What it says of a circuit that meets it.
        unmet: Of one that does not.
    """

    name: str
    met_unless_rejected: bool
    met: str
    unmet: str

    def holds(self, p: float, level: float) -> bool:
        """Whether a circuit meets it, by the p of its null hypothesis."""
        return p > level if self.met_unless_rejected else p <= level


EQUIVALENCE = Criterion(
    "equivalence", True, "The data are consistent with the circuit doing as well as the model.",
    "Circuit and model do not do equally well: one is better on more of the inputs.",
)  # fmt: skip
INDEPENDENCE = Criterion(
    "independence", True, "No information about the answers was found outside the circuit.",
    "The rest of the model still carries information about the answers.",
)  # fmt: skip
MINIMALITY = Criterion(
    "minimality", False, "Every edge matters more than random edges do.",
    "At least one edge matters no more than random edges do.",
)  # fmt: skip
SUFFICIENCY = Criterion(
    "sufficiency", False, "The circuit alone does better than random circuits of its size.",
    "Random circuits of its size do as well as the circuit.",
)  # fmt: skip
PARTIAL_NECESSITY = Criterion(
    "partial necessity", False, "Ablating the circuit does more damage than ablating random circuits of its size.",
    "Ablating random circuits of its size does as much damage.",
)  # fmt: skip
CRITERIA = EQUIVALENCE, INDEPENDENCE, MINIMALITY, SUFFICIENCY, PARTIAL_NECESSITY


@dataclass(frozen=True)
class CircuitTest:
    """How a circuit does by one criterion.

    Attributes:
        name: The criterion's.
        p: How likely data like these are, or more extreme ones, under the null hypothesis, for this test alone.
        adjusted: The same, corrected for all five.
        holds: Whether the circuit passes at the level that was asked for.
        meaning: What that says, in a sentence.
        edges: In minimality the p of each edge of the circuit, by itself.
    """

    name: str
    p: float
    adjusted: float
    holds: bool
    meaning: str
    edges: dict[str, float]


def circuit_tests(
    problem: Problem, circuit: Collection[str], level: float = 0.05, n_random: int = N_RANDOM, seed: int = 0
) -> list[CircuitTest]:
    """The five tests of a circuit.

    Args:
        problem: The model on pairs of inputs. Its metric has to be the loss or the logit difference: by the
            others the whole model is without damage on every input, so that no circuit could do better.
        circuit: The circuit's edges.
        level: The rate of errors of the first kind that is wanted, over all five tests.
        n_random: Random circuits, paths and permutations.
        seed: Of everything random.

    Raises:
        RaspLensError: If the metric is another, or the circuit is empty, is everything, or names an edge that
            the model has not; or if the level is none, or there are so few random draws, or paths outside of the
            circuit, that no circuit could pass.
    """
    check_metric(problem)
    own = problem.graph.mask_of(circuit)
    if own.all() or not own.any():
        raise RaspLensError(
            f"A circuit test needs some of the model's {len(own)} edges, not none and not all; got {own.sum()}."
        )
    if not 0 < level < 1:
        raise RaspLensError(f"level must lie between 0 and 1; got {level!r}.")
    if n_random < (enough := math.ceil(len(CRITERIA) / level) - 1):
        raise RaspLensError(
            f"With n_random={n_random} no p-value can reach level={level:g} when corrected for {len(CRITERIA)} "
            f"tests. Draw at least {enough} random circuits."
        )
    graph, n = problem.graph, int(own.sum())
    references, outside = (random_circuits(graph, n, n_random, seed, among) for among in (None, ~own))
    paths = random_paths(graph, n_random, seed)
    if (leaving := int((paths & ~own).any(axis=1).sum())) < enough:
        raise RaspLensError(
            f"Only {leaving} of {n_random} random paths leave the circuit; the minimality test needs {enough}. "
            "Raise n_random, or test a smaller circuit."
        )
    edges = minimality(problem, own, paths, seed)
    p = {
        EQUIVALENCE: equivalence(problem, own),
        INDEPENDENCE: independence(problem, own, n_random, seed),
        MINIMALITY: max(edges.values()),
        SUFFICIENCY: sufficiency(problem, own, references),
        PARTIAL_NECESSITY: partial_necessity(problem, own, outside),
    }
    found = []
    for criterion, adjusted in zip(p, holm(list(p.values())), strict=True):
        holds = criterion.holds(adjusted, level)
        meaning, of_edges = criterion.met if holds else criterion.unmet, edges if criterion is MINIMALITY else {}
        found.append(CircuitTest(criterion.name, p[criterion], adjusted, holds, meaning, of_edges))
    return found


def check_metric(problem: Problem) -> None:
    """Raises where damage is measured from the whole model."""
    if problem.protocol.metric not in NEED_LOGITS:
        raise RaspLensError(
            f'The metric of a circuit test must be "loss" or "logit_difference"; got {problem.protocol.metric!r}, '
            "under which the whole model has no damage on any input."
        )


def equivalence(problem: Problem, circuit: Bool[np.ndarray, " edge"]) -> float:
    """P-value of the null hypothesis that circuit and model do better on equally many inputs, up to `MARGIN`.

    The sign test at the nearer end of that interval, one-sided, which is the more likely one.
    """
    own, whole = problem.damages(_patched(np.stack([circuit, np.ones_like(circuit)])))
    better = np.where(np.abs(own - whole) < TIE, 0.5, own < whole)
    n, wins = len(better), float(better.sum())
    fewer = math.ceil(min(wins, n - wins))  # half a win, of an odd number of ties, speaks for the circuit
    return float(binom.cdf(fewer, n, 0.5 - MARGIN))


def independence(problem: Problem, circuit: Bool[np.ndarray, " edge"], n_random: int, seed: int) -> float:
    """P-value of the null hypothesis that, with the circuit ablated, logits are independent of the model's.

    HSIC with Gaussian kernels, by permutation (Gretton et al. 2007, "A Kernel Statistical Test of Independence").
    Their width is the median of the distances that are not zero: most answers may be the same.
    """
    logits = problem.answers(_patched(np.stack([~circuit, np.ones_like(circuit)])))
    without, whole = (_kernel(each.reshape(len(each), -1)) for each in logits)
    random = rng(seed, "circuit tests")
    orders = [random.permutation(len(whole)) for _ in range(n_random)]
    null = np.array([(without * whole[np.ix_(order, order)]).sum() for order in orders])
    return _p(float((without * whole).sum()), null)


def minimality(
    problem: Problem, circuit: Bool[np.ndarray, " edge"], paths: Circuits, seed: int
) -> dict[str, float]:
    """By edge, the p-value of: removing it changes no more than removing an edge that was added at random.

    For each random path, the circuit with that path is taken, and one edge of it taken away that was not in the
    circuit. The p are those of each edge by itself.
    """
    random = rng(seed, "circuit tests")
    inflated, without = [], []
    for path in paths:
        added = np.flatnonzero(path & ~circuit)
        if not len(added):
            continue
        one = random.choice(added)
        inflated.append(circuit | path)
        without.append(np.where(np.arange(len(circuit)) == one, False, circuit | path))
    own = np.flatnonzero(circuit)
    smaller = np.stack([np.where(np.arange(len(circuit)) == edge, False, circuit) for edge in own])
    found = problem.damages(_patched(np.stack([circuit, *smaller, *inflated, *without])))
    clean, ablated, rest = found[0], found[1 : 1 + len(own)], found[1 + len(own) :]
    null = np.abs(rest[: len(inflated)] - rest[len(inflated) :]).mean(axis=1) if inflated else np.zeros(0)
    effects = np.abs(ablated - clean).mean(axis=1)
    each = [_p(float(effect), null) if effect > TIE else 1.0 for effect in effects]
    return {problem.graph.edges[edge]: p for edge, p in zip(own, each, strict=True)}


def sufficiency(problem: Problem, circuit: Bool[np.ndarray, " edge"], references: Circuits) -> float:
    """P-value of the null hypothesis that the circuit alone does no better than a random one of its size."""
    found = problem.damages(_patched(np.concatenate([[circuit], references]))).mean(axis=1)
    return _p(-float(found[0]), -found[1:])


def partial_necessity(problem: Problem, circuit: Bool[np.ndarray, " edge"], references: Circuits) -> float:
    """P-value of: ablating the circuit does no more damage than ablating a random one that shares no edge."""
    found = problem.damages(_patched(~np.concatenate([[circuit], references]))).mean(axis=1)
    return _p(float(found[0]), found[1:])


def random_circuits(
    graph: EdgeGraph, n_edges: int, n: int, seed: int, among: Bool[np.ndarray, " edge"] | None = None
) -> Circuits:
    """Circuits of the edges of random paths from an embedding to the logits, with exactly so many edges each.

    Args:
        graph: The model's edges.
        n_edges: How many each has; fewer if there are no more to choose from.
        n: How many circuits.
        seed: Of the paths.
        among: The edges to choose from; all by default.
    """
    random = rng(seed, "circuit tests")
    allowed = np.ones(len(graph.edges), dtype=bool) if among is None else among
    by_receiver = _edges_into(graph)
    wanted = min(n_edges, int(allowed.sum()))
    found = np.zeros((n, len(graph.edges)), dtype=bool)
    for circuit in found:
        for _ in range(MOST_PATHS):
            if (missing := wanted - int(circuit.sum())) <= 0:
                break
            new = [edge for edge in _path(graph, by_receiver, random) if allowed[edge] and not circuit[edge]]
            circuit[new[:missing]] = True
        left = np.flatnonzero(allowed & ~circuit)
        circuit[random.choice(left, wanted - int(circuit.sum()), replace=False)] = True
    return found


def random_paths(graph: EdgeGraph, n: int, seed: int, among: Bool[np.ndarray, " edge"] | None = None) -> Circuits:
    """The edges of random paths from an embedding to the logits, each by itself.

    Args:
        graph: The model's edges.
        n: How many paths.
        seed: Of the paths.
        among: The edges that they take, some of which lead into each node that one leads from; all by default.
    """
    random, by_receiver = rng(seed, "circuit tests"), _edges_into(graph, among)
    found = np.zeros((n, len(graph.edges)), dtype=bool)
    for path in found:
        path[_path(graph, by_receiver, random)] = True
    return found


def _edges_into(graph: EdgeGraph, among: Bool[np.ndarray, " edge"] | None = None) -> dict[str, list[int]]:
    """The edges into each node, of some or of all."""
    found: dict[str, list[int]] = {}
    for i, (r, _) in enumerate(graph.pairs):
        if among is not None and not among[i]:
            continue
        found.setdefault(graph.node_of(graph.receivers[r]), []).append(i)
    return found


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for how many they are, by Holm's method (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    scaled = np.asarray(p, dtype=float)[order] * np.arange(len(p), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected.tolist()


def _path(graph: EdgeGraph, by_receiver: dict[str, list[int]], random: np.random.Generator) -> list[int]:
    """A random path, from the logits back to an embedding."""
    node, path = LOGITS, []
    while node not in (EMBED, POS_EMBED):
        edge = int(random.choice(by_receiver[node]))
        path.append(edge)
        node = graph.senders[graph.pairs[edge, 1]]
    return path


def _patched(circuits: Circuits) -> Float[np.ndarray, "circuit edge"]:
    """Return the edges to ablate: all but a circuit's."""
    return (~circuits).astype(np.float32)


def _kernel(rows: Float[np.ndarray, "pair feature"]) -> Float[np.ndarray, "pair pair"]:
    """A Gaussian kernel, centred; zero where all rows are the same."""
    distances = cdist(rows, rows)
    apart = distances[distances > TIE]
    kernel = np.exp(-(distances**2) / (2 * np.median(apart) ** 2)) if len(apart) else np.ones_like(distances)
    centring = np.eye(len(rows)) - 1 / len(rows)
    return centring @ kernel @ centring


def _p(statistic: float, null: Float[np.ndarray, " draw"]) -> float:
    """The share of draws that are as large, the statistic itself among them; ties count against it."""
    slack = TIE * max(1.0, abs(statistic)) if np.isfinite(statistic) else 0.0
    return float((1 + (null >= statistic - slack).sum()) / (1 + len(null)))
