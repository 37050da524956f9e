"""Exact patching, the oracle that approximations are tested against: every edge or node ablated by itself."""

import numpy as np
from jaxtyping import Float

from rasplens.compare.discovery.edge_graph import LOGITS, EdgeGraph
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.model.random_streams import rng


def exact_edges(problem: Problem) -> Scores:
    """The damage that ablating each edge does, less that of none."""
    return _effects(problem, np.eye(len(problem.graph.edges), dtype=np.float32))


def exact_nodes(problem: Problem) -> Scores:
    """For each edge the lesser effect of its two nodes, each ablated in all that it writes.

    So it is what a circuit of nodes says of edges: all between two nodes that matter.
    """
    graph, (_, sender) = problem.graph, problem.graph.pairs.T
    by_node = np.stack([sender == s for s in range(len(graph.senders))]).astype(np.float32)
    return lesser_of_ends(graph, _effects(problem, by_node))


def lesser_of_ends(graph: EdgeGraph, effects: Float[np.ndarray, " sender"]) -> Scores:
    """For each edge the lesser effect of its two nodes, by size."""
    effect = dict(zip(graph.senders, effects, strict=True))
    effect[LOGITS] = np.inf
    ends = [(effect[graph.senders[s]], effect[graph.node_of(graph.receivers[r])]) for r, s in graph.pairs]
    return np.array([min(both, key=abs) for both in ends])


def random_edges(problem: Problem) -> Scores:
    """A random score for each edge: what any method has to beat."""
    return rng(problem.protocol.seed, "circuit discovery controls").random(len(problem.graph.edges))


def _effects(problem: Problem, patches: np.ndarray) -> np.ndarray:
    """The damage of each of several sets of patched edges, less that of none."""
    found = problem.damages(np.concatenate([np.zeros((1, patches.shape[1])), patches])).mean(axis=1)
    return (found[1:] - found[0]).astype(float)
