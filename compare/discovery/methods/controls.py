"""Controls: scores that say nothing of what a model computes, which all methods have to beat."""

import numpy as np
from jaxtyping import Float

from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.compare.discovery.truth import directions_read, directions_written
from rasplens.model.random_streams import rng


def random_edges(problem: Problem) -> Scores:
    """A random score for each edge."""
    return rng(problem.protocol.seed, "circuit discovery controls").random(len(problem.graph.edges))


def products_of_weights(problem: Problem) -> Scores:
    """How far what an edge's sender writes lies along what its receiver reads. No input is looked at.

    `||W R|| / (||W|| ||R||)`, Frobenius norms of the weights that write, W, and of those that read, R.

    Source: the composition score of Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", which
    takes a head's whole products W_V W_O and W_Q W_K.
    """
    model, graph = problem.transformer, problem.graph
    written = [_of_norm_one(directions_written(model, sender)) for sender in graph.senders]
    read = [_of_norm_one(directions_read(model, receiver)) for receiver in graph.receivers]
    return np.array([np.linalg.norm(written[s] @ read[r]) for r, s in graph.pairs], dtype=float)


def _of_norm_one(weights: Float[np.ndarray, "row column"]) -> Float[np.ndarray, "row column"]:
    """Weights over their norm; zeros stay."""
    size = np.linalg.norm(weights.astype(np.float64))
    return weights / size if size else weights.astype(np.float64)
