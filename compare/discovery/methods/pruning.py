"""Edge pruning: which edges to keep is found by gradient descent on masks.

Source: Cao et al. 2021, "Low-Complexity Probing via Finding Subnetworks" (arXiv 2104.03514), and Bhaskar et al.
    2024,
"Finding Transformer Circuits with Edge Pruning" (arXiv 2406.16778): masks are hard concrete (Louizos et al. 2018,
arXiv 1712.01312), the loss is the damage and the number of edges that are kept. The score of an edge is the
probability that it is kept, averaged over how much edges cost.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rasplens.compare.discovery.patched_run import in_float64
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.learned.training.fit import updated
from rasplens.model.random_streams import rng

COSTS = (0.03, 0.3, 3.0)
"""Costs of keeping all edges, in units of the damage of ablating them all."""

STEPS, LEARNING_RATE = 200, 0.1

STRETCH, TEMPERATURE = (-0.1, 1.1), 2 / 3
"""Parameters of the hard concrete distribution, as published."""

FIRST = 2.0
"""Log odds at which masks start: most edges are kept."""


@in_float64
def edge_pruning(problem: Problem) -> Scores:
    """For each edge the probability that it is kept."""
    n, pairs = len(problem.graph.edges), jnp.asarray(problem.graph.pairs)
    everything = float(jax.jit(problem.damage)(problem.matrix(np.ones(n))))
    none = float(jax.jit(problem.damage)(problem.matrix(np.zeros(n))))
    scale = max(everything - none, 1e-6)
    optimiser = optax.adam(LEARNING_RATE)
    empty = problem.matrix(np.zeros(n)).astype(float)

    def loss(odds: jax.Array, key: jax.Array, cost: jax.Array) -> jax.Array:
        uniform = jax.random.uniform(key, (n,), minval=1e-6, maxval=1 - 1e-6)
        soft = jax.nn.sigmoid((jnp.log(uniform) - jnp.log1p(-uniform) + odds) / TEMPERATURE)
        kept = jnp.clip(soft * (STRETCH[1] - STRETCH[0]) + STRETCH[0], 0, 1)
        patched = empty.at[pairs[:, 0], pairs[:, 1]].set(1 - kept)
        return problem.damage(patched) / scale + cost * _probability(odds).mean()

    def step(
        state: tuple[jax.Array, optax.OptState, jax.Array], key: jax.Array
    ) -> tuple[tuple[jax.Array, optax.OptState, jax.Array], None]:
        odds, moments, cost = state
        return (*updated(optimiser, odds, moments, jax.grad(loss)(odds, key, cost)), cost), None

    keys = jax.random.split(
        jax.random.key(int(rng(problem.protocol.seed, "circuit discovery controls").integers(2**31))), STEPS
    )
    train = jax.jit(lambda state: jax.lax.scan(step, state, keys)[0][0])
    start = jnp.full(n, FIRST)
    found = [train((start, optimiser.init(start), jnp.asarray(cost))) for cost in COSTS]
    return np.mean([np.asarray(_probability(odds)) for odds in found], axis=0).astype(float)


def _probability(odds: jax.Array) -> jax.Array:
    """That a hard concrete mask is not zero (Louizos et al. 2018, equation 12)."""
    return jax.nn.sigmoid(odds - TEMPERATURE * math.log(-STRETCH[0] / STRETCH[1]))
