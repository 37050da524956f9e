"""ACDC: edges taken away one by one, from the logits back, as long as the damage stays small.

Source: Conmy et al. 2023, "Towards Automated Circuit Discovery" (arXiv 2304.14997, algorithm 1). An edge stays if
ablating it, beside those already ablated, adds at least the threshold to the damage. All thresholds are run
side by side. The score of an edge is the largest threshold at which it stays.
"""

import jax
import jax.numpy as jnp
import numpy as np

from rasplens.compare.discovery.patched_run import in_float64
from rasplens.compare.discovery.problem import Problem, Scores

THRESHOLDS = 16
"""Number of thresholds, log-spaced from the damage of ablating everything down to `SMALLEST` of it."""

SMALLEST = 1e-5
"""Smallest threshold, as a share of the damage of ablating everything; smaller damage is rounding."""


@in_float64
def acdc(problem: Problem) -> Scores:
    """For each edge the largest threshold at which ACDC keeps it; 0 if none does."""
    graph = problem.graph
    everything = float(jax.jit(problem.damage)(problem.matrix(np.ones(len(graph.edges)))))
    none = jax.jit(problem.damage)(problem.matrix(np.zeros(len(graph.edges))))
    thresholds = max(everything - float(none), SMALLEST) * jnp.geomspace(SMALLEST, 1.0, THRESHOLDS)
    signed = not problem.protocol.absolute

    def step(state: tuple[jax.Array, jax.Array], edge: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        patched, damage = state
        receiver, sender = edge
        tried = patched.at[:, receiver, sender].set(1.0)
        after = jax.vmap(problem.damage)(tried)
        added = after - damage if signed else jnp.abs(after - damage)
        goes = added < thresholds
        patched = jnp.where(goes[:, None, None], tried, patched)
        return (patched, jnp.where(goes, after, damage)), ~goes

    first = jnp.zeros((THRESHOLDS, len(graph.receivers), len(graph.senders))), jnp.full(THRESHOLDS, none)
    backwards = graph.pairs[::-1]
    _, stays = jax.jit(lambda state, edges: jax.lax.scan(step, state, edges))(first, jnp.asarray(backwards))
    largest = np.where(np.asarray(stays), np.asarray(thresholds), 0).max(axis=1)
    return largest[::-1].astype(float)
