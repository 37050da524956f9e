"""EAP-GP: edge attribution patching with gradients on a path that the model itself chooses.

Integrated gradients go straight from one input to the other, and spend most points where attention is saturated
and the gradient next to nothing. GradPath starts at the clean embeddings and takes steps of unit length down the
squared distance of the logits from those of the other input. An edge is scored as by EAP, with the gradient
averaged over the path.

Source: Zhang et al. 2025, "EAP-GP: Mitigating Saturation Effect in Gradient-based Automated Circuit
Identification" (arXiv 2502.06852), equation 8.
"""

import jax
import jax.numpy as jnp
import numpy as np

from rasplens.compare.discovery.edge_graph import EMBED, POS_EMBED
from rasplens.compare.discovery.patched_run import in_float64
from rasplens.compare.discovery.problem import Problem, Scores


@in_float64
def eap_gp(problem: Problem) -> Scores:
    """EAP with gradients averaged over a path of `Protocol.points` steps in the space of embeddings."""
    graph, change = problem.graph, problem.instead - problem.clean[1]
    tokens, places = jnp.asarray(problem.tokens), jnp.asarray(problem.places)
    from_embedding = _of_senders(problem, EMBED)

    @jax.jit
    def gradient(embedded: jax.Array) -> jax.Array:
        instead = problem.instead.at[graph.senders.index(EMBED)].set(embedded)

        def damage(added: jax.Array) -> jax.Array:
            logits, _ = problem.run(tokens, from_embedding, instead, added)
            return problem.damages_of(logits[:, places]).mean()

        return jax.grad(damage)(jnp.zeros((len(graph.receivers), *embedded.shape)))

    points = path(problem)
    mean = sum(map(gradient, points)) / len(points)
    found = np.asarray(jnp.einsum("rbpd,sbpd->rs", mean, change))
    return found[graph.pairs[:, 0], graph.pairs[:, 1]].astype(float)


@in_float64
def path(problem: Problem) -> list[jax.Array]:
    """The points of the path: what the embedding of tokens writes there, `[pair, ctx, d_model]`."""
    place, tokens = problem.graph.senders.index(EMBED), jnp.asarray(problem.tokens)
    both, one = _of_senders(problem, EMBED, POS_EMBED), _of_senders(problem, EMBED)
    goal, _ = problem.run(tokens, both, problem.instead)

    @jax.jit
    def step(embedded: jax.Array) -> jax.Array:
        def distance(at: jax.Array) -> jax.Array:
            logits, _ = problem.run(tokens, one, problem.instead.at[place].set(at))
            return ((logits - goal) ** 2).sum()

        slope = jax.grad(distance)(embedded)
        length = jnp.sqrt((slope**2).sum(axis=(1, 2), keepdims=True))
        return embedded - jnp.where(length > 0, slope / jnp.where(length > 0, length, 1), 0)

    points = [problem.clean[1][place]]
    for _ in range(problem.protocol.points):
        points.append(step(points[-1]))
    return points[1:]


def _of_senders(problem: Problem, *names: str) -> jax.Array:
    """All edges from some senders, patched: `[receiver, sender]`."""
    graph = problem.graph
    chosen = jnp.asarray([name in names for name in graph.senders], dtype=float)
    return jnp.broadcast_to(chosen, (len(graph.receivers), len(graph.senders)))
