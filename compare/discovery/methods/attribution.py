"""Edge attribution patching, and with integrated gradients: patching approximated by gradients.

The score of an edge is the change of what its sender writes, from the clean to the other input, times the
gradient of the damage with respect to what its receiver reads. What differs is where the gradient is taken.

Source: Syed et al. 2023, "Attribution Patching Outperforms Automated Circuit Discovery" (arXiv 2310.10348): at the
clean input. Hanna et al. 2024, "Have Faith in Faithfulness" (arXiv 2403.17806): averaged on the way between the
two, of inputs or of activations. The gradient of KL is zero at the clean input, where the damage is least;
there, EAP takes that of the logit difference.

On the whole way, what the edges of a sender are given adds up to what ablating them all does: the axiom of
completeness of integrated gradients (Sundararajan et al. 2017, arXiv 1703.01365). With few points it may be missed
by far, where attention is nearly hard: its gradient is large on a short part of the way, which no point may hit.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from rasplens.compare.discovery.edge_graph import EMBED, POS_EMBED
from rasplens.compare.discovery.methods.patching import edges_by_sender, effects, lesser_of_ends
from rasplens.compare.discovery.patched_run import in_float64
from rasplens.compare.discovery.problem import Problem, Scores

MISSED = 0.1
"""Integrated gradients warn if they miss more than this share of the ablation damage."""

LEAST_AT_CLEAN = "kl", "l2"
"""Metrics that are minimal at the clean input, where their gradient is zero."""


def eap(problem: Problem) -> Scores:
    """Edge attribution patching: gradients at the clean input.

    By the metrics that are least there, it takes the gradient of the logit difference. For a model that answers
    with numbers there is none, and all scores are zero.
    """
    return _attributed(with_gradient_at_clean(problem), [0.0])


def with_gradient_at_clean(problem: Problem) -> Problem:
    """Return the problem by the logit difference, if its own metric has no gradient at the clean input."""
    if problem.protocol.metric in LEAST_AT_CLEAN and problem.right is not None:
        return replace(problem, protocol=replace(problem.protocol, metric="logit_difference"))
    return problem


def eap_ig_inputs(problem: Problem) -> Scores:
    """EAP with gradients on the way from the other to the clean embeddings.

    Warns:
        UserWarning: If what the edges from the embeddings are given does not add up.
    """
    found = _attributed(problem, _shares(problem.protocol.points))
    embeddings = problem.graph.from_embeddings
    _warn_if_incomplete(problem, "eap-ig-inputs", np.stack([embeddings]), found)
    return found


@in_float64
def eap_ig_activations(problem: Problem) -> Scores:
    """EAP with gradients on the way from the other to the clean activation of the edge's sender.

    Warns:
        UserWarning: If what the edges of each sender are given does not add up.
    """
    graph, change = problem.graph, problem.instead - problem.clean[1]
    shares = jnp.asarray(_shares(problem.protocol.points))
    gradient = _gradient(problem)

    @jax.jit
    def of_sender(sender: jax.Array) -> jax.Array:
        patched = jax.nn.one_hot(sender, len(graph.senders))[None].repeat(len(graph.receivers), axis=0)
        mean = jax.lax.map(lambda share: gradient(share * patched), shares).mean(axis=0)
        return jnp.einsum("rbpd,bpd->r", mean, change[sender])

    by_sender = np.stack([np.asarray(of_sender(jnp.asarray(s))) for s in range(len(graph.senders))], axis=1)
    found = by_sender[graph.pairs[:, 0], graph.pairs[:, 1]].astype(float)
    _warn_if_incomplete(problem, "eap-ig-activations", edges_by_sender(graph), found)
    return found


def attribution_of_nodes(problem: Problem) -> Scores:
    """Attribution patching of nodes: for each edge the lesser effect of its two nodes.

    To first order a node's effect is the sum of those of the edges from it.

    Source: Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale".
    """
    return _of_nodes(problem, eap)


def attribution_of_nodes_ig(problem: Problem) -> Scores:
    """Attribution patching of nodes, with gradients on the way from the other to the clean embeddings."""
    return _of_nodes(problem, eap_ig_inputs)


def _of_nodes(problem: Problem, of_edges: Callable[[Problem], Scores]) -> Scores:
    graph = problem.graph
    by_node = np.bincount(graph.pairs[:, 1], weights=of_edges(problem), minlength=len(graph.senders))
    return lesser_of_ends(graph, by_node)


def _warn_if_incomplete(problem: Problem, name: str, ways: Bool[np.ndarray, "way edge"], found: Scores) -> None:
    """Warns if what edges are given does not add up to the damage of ablating all that change on one way."""
    damages = effects(problem, ways.astype(np.float32))
    missed, total = np.abs(ways @ found - damages).sum(), np.abs(damages).sum()
    if missed > MISSED * total:
        warnings.warn(
            f"{name} with points={problem.protocol.points} misses {missed:.2g} of the ablation damage of "
            f"{total:.2g}, so its scores are rough. Use more points: Protocol(points=...) or --points.",
            stacklevel=3,
        )


def _shares(points: int) -> list[float]:
    """How far from the clean to the other input each point is: in the middle of equal parts."""
    return [(point + 0.5) / points for point in range(points)]


@in_float64
def _attributed(problem: Problem, shares: list[float]) -> Scores:
    """Scores with gradients averaged over inputs whose embeddings are patched by some shares."""
    graph, change = problem.graph, problem.instead - problem.clean[1]
    embeds = jnp.asarray([name in (EMBED, POS_EMBED) for name in graph.senders], dtype=float)
    everywhere = jnp.broadcast_to(embeds, (len(graph.receivers), len(graph.senders)))
    gradient = jax.jit(_gradient(problem))
    total = sum(gradient(share * everywhere) for share in shares)
    found = np.asarray(jnp.einsum("rbpd,sbpd->rs", total, change)) / len(shares)
    return found[graph.pairs[:, 0], graph.pairs[:, 1]].astype(float)


def _gradient(problem: Problem) -> Callable[[jax.Array], jax.Array]:
    """From patched edges, the gradient of the damage by what receivers read: `[receiver, pair, ctx, d_model]`."""
    shape = (len(problem.graph.receivers), *problem.instead.shape[1:])
    return lambda patched: jax.grad(lambda added: problem.damage(patched, added))(jnp.zeros(shape))
