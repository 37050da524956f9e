"""Exact patching, the oracle that approximations are tested against: every edge or node ablated by itself."""

import numpy as np
from jaxtyping import Bool, Float

from rasplens.compare.discovery.edge_graph import LOGITS, EdgeGraph
from rasplens.compare.discovery.problem import Problem, Scores


def exact_edges(problem: Problem) -> Scores:
    """The damage that ablating each edge does, less that of none."""
    return effects(problem, np.eye(len(problem.graph.edges), dtype=np.float32))


def exact_nodes(problem: Problem) -> Scores:
    """For each edge the lesser effect of its two nodes, each ablated in all that it writes.

    So it is what a circuit of nodes says of edges: all between two nodes that matter.
    """
    graph = problem.graph
    return lesser_of_ends(graph, effects(problem, edges_by_sender(graph).astype(np.float32)))


def edges_by_sender(graph: EdgeGraph) -> Bool[np.ndarray, "sender edge"]:
    """Which edges come from each sender."""
    return np.stack([graph.pairs[:, 1] == sender for sender in range(len(graph.senders))])


def lesser_of_ends(graph: EdgeGraph, effects: Float[np.ndarray, " sender"]) -> Scores:
    """For each edge the lesser effect of its two nodes, by size."""
    effect = dict(zip(graph.senders, effects, strict=True))
    effect[LOGITS] = np.inf
    ends = [(effect[graph.senders[s]], effect[graph.node_of(graph.receivers[r])]) for r, s in graph.pairs]
    return np.array([min(both, key=abs) for both in ends])


def effects(problem: Problem, patches: Float[np.ndarray, "patch edge"]) -> Float[np.ndarray, " patch"]:
    """The damage of each of several sets of patched edges, less that of none."""
    found = problem.damages(np.concatenate([np.zeros((1, patches.shape[1])), patches])).mean(axis=1)
    return (found[1:] - found[0]).astype(float)
