"""Edge attribution patching, and with integrated gradients: patching approximated by gradients.

The score of an edge is the change of what its sender writes, from the clean to the other input, times the
gradient of the damage with respect to what its receiver reads. What differs is where the gradient is taken.

Source: Syed et al. 2023, "Attribution Patching Outperforms Automated Circuit Discovery" (arXiv 2310.10348): at the
clean input. Hanna et al. 2024, "Have Faith in Faithfulness" (arXiv 2403.17806): averaged on the way between the
two, of inputs or of activations. The gradient of KL is zero at the clean input, where the damage is least;
there, EAP takes that of the logit difference.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from rasplens.compare.discovery.edge_graph import EMBED, POS_EMBED
from rasplens.compare.discovery.methods.patching import lesser_of_ends
from rasplens.compare.discovery.problem import Problem, Scores

STEPS = 5
"""Points on the way between two inputs at which gradients are taken; as published."""

LEAST_AT_CLEAN = "kl", "l2"
"""Metrics that are least at the clean input, where their gradient is zero."""


def eap(problem: Problem) -> Scores:
    """Edge attribution patching: gradients at the clean input.

    By the metrics that are least there, it takes the gradient of the logit difference. For a model that answers
    with numbers there is none, and all scores are zero.
    """
    if problem.protocol.metric in LEAST_AT_CLEAN and problem.right is not None:
        problem = replace(problem, protocol=replace(problem.protocol, metric="logit_difference"))
    return _attributed(problem, [0.0])


def eap_ig_inputs(problem: Problem) -> Scores:
    """EAP with gradients on the way from the other to the clean embeddings."""
    return _attributed(problem, _shares())


def eap_ig_activations(problem: Problem) -> Scores:
    """EAP with gradients on the way from the other to the clean activation of the edge's sender."""
    graph, change = problem.graph, problem.instead - problem.clean[1]
    shares = jnp.asarray(_shares())
    gradient = _gradient(problem)

    @jax.jit
    def of_sender(sender: jax.Array) -> jax.Array:
        patched = jax.nn.one_hot(sender, len(graph.senders))[None].repeat(len(graph.receivers), axis=0)
        mean = jax.lax.map(lambda share: gradient(share * patched), shares).mean(axis=0)
        return jnp.einsum("rbpd,bpd->r", mean, change[sender])

    found = np.stack([np.asarray(of_sender(jnp.asarray(s))) for s in range(len(graph.senders))], axis=1)
    return found[graph.pairs[:, 0], graph.pairs[:, 1]].astype(float)


def attribution_of_nodes(problem: Problem) -> Scores:
    """Attribution patching of nodes: for each edge the lesser effect of its two nodes.

    To first order a node's effect is the sum of those of the edges from it.

    Source: Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale".
    """
    return _of_nodes(problem, eap)


def attribution_of_nodes_ig(problem: Problem) -> Scores:
    """The same with gradients on the way from the other to the clean embeddings."""
    return _of_nodes(problem, eap_ig_inputs)


def _of_nodes(problem: Problem, of_edges: Callable[[Problem], Scores]) -> Scores:
    graph = problem.graph
    by_node = np.bincount(graph.pairs[:, 1], weights=of_edges(problem), minlength=len(graph.senders))
    return lesser_of_ends(graph, by_node)


def _shares() -> list[float]:
    """How far from the clean to the other input each point is."""
    return [(step + 0.5) / STEPS for step in range(STEPS)]


def _attributed(problem: Problem, shares: list[float]) -> Scores:
    """Scores with gradients averaged over inputs whose embeddings are patched by some shares."""
    graph, change = problem.graph, problem.instead - problem.clean[1]
    embeds = jnp.asarray([name in (EMBED, POS_EMBED) for name in graph.senders], dtype=jnp.float32)
    everywhere = jnp.broadcast_to(embeds, (len(graph.receivers), len(graph.senders)))
    gradient = jax.jit(_gradient(problem))
    total = sum(gradient(share * everywhere) for share in shares)
    found = np.asarray(jnp.einsum("rbpd,sbpd->rs", total, change)) / len(shares)
    return found[graph.pairs[:, 0], graph.pairs[:, 1]].astype(float)


def _gradient(problem: Problem) -> Callable[[jax.Array], jax.Array]:
    """From patched edges, the gradient of the damage by what receivers read: `[receiver, pair, ctx, d_model]`."""
    shape = (len(problem.graph.receivers), *problem.instead.shape[1:])
    return lambda patched: jax.grad(lambda added: problem.damage(patched, added))(jnp.zeros(shape))
