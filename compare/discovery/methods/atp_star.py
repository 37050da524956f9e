"""AtP*: attribution patching with its two corrections, on edges.

Gradients mislead in two places. Saturated attention has hardly any, however much a patched query or key would move
it. So attention is computed anew with the patched edge, and only what follows is linear: the paper's QK fix. And
effects along two paths may cancel. So the gradient is taken several times, each time without one layer, and the
sizes are averaged: GradDrop. An edge is patched at all positions at once; the paper patches them one by one.

Source: Kramár et al. 2024, "AtP*: An efficient and scalable method for localizing LLM behaviour to components"
(arXiv 2403.00745, sections 3.1 and 3.2).
"""

from collections.abc import Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rasplens.compare.discovery.edge_graph import LOGITS
from rasplens.compare.discovery.methods.attribution import with_gradient_at_clean
from rasplens.compare.discovery.patched_run import in_float64, patched_run
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.model.hook_points import act_name

LETTERS = "q", "k"
"""What a head reads to decide where it attends."""

Gradients = tuple[jax.Array, dict[str, jax.Array]]
"""Of the damage: by what receivers read `[receiver, pair, ctx, d_model]`, and by each layer's attention patterns
`[pair, head, query, key]`, by their hook names."""


@in_float64
def atp_star(problem: Problem) -> Scores:
    """AtP*: attribution patching with the QK fix and GradDrop. Scores are sizes of effects and have no sign.

    An edge's score is the mean over the layers other than its receiver's. A model of one layer keeps its gradient.
    """
    problem = with_gradient_at_clean(problem)
    graph, n_layers = problem.graph, problem.transformer.config.n_layers
    change, patterns = problem.instead - problem.clean[1], _patched_patterns(problem)
    dropped: list[int | None] = [*range(n_layers)] if n_layers > 1 else [None]
    total = sum(_sizes(problem, _gradients(problem, layer), change, patterns) for layer in dropped)
    others = np.array([n_layers if name == LOGITS else max(n_layers - 1, 1) for name in graph.receivers])
    return (total / others[:, None])[graph.pairs[:, 0], graph.pairs[:, 1]]


def _gradients(problem: Problem, dropped: int | None) -> Gradients:
    """The gradients of the damage, without those that pass through one layer's heads and MLP."""
    config = problem.transformer.config
    without = [] if dropped is None else [act_name("attn_out", dropped), act_name("mlp_out", dropped)]

    def damage(added: jax.Array, at_patterns: Mapping[str, jax.Array]) -> jax.Array:
        def rule(name: str, value: jax.Array) -> jax.Array:
            if name in at_patterns:
                return value + at_patterns[name]
            return jax.lax.stop_gradient(value) if name in without else value

        return replace(problem, run=patched_run(problem.transformer, rule)).damage(None, added)

    pairs, ctx = problem.tokens.shape
    none = jnp.zeros((pairs, config.n_heads, ctx, ctx))
    at_patterns = {act_name("pattern", layer): none for layer in range(config.n_layers)}
    added = jnp.zeros((len(problem.graph.receivers), *problem.instead.shape[1:]))
    by_added, by_patterns = jax.jit(jax.grad(damage, argnums=(0, 1)))(added, at_patterns)
    return by_added, by_patterns


def _patched_patterns(problem: Problem) -> dict[tuple[int, str], jax.Array]:
    """By layer and letter, by how much each sender's edges change attention: `[sender, pair, head, query, key]`.

    A sender's edges into all of a layer's queries are patched together, and so are those into its keys, because
    heads of one layer do not read each other.
    """
    graph, n_layers = problem.graph, problem.transformer.config.n_layers
    senders = jnp.eye(len(graph.senders))
    found = {}
    for layer in range(n_layers):
        for letter in LETTERS:
            own = [name.startswith(f"L{layer}H") and name.endswith(f".{letter}") for name in graph.receivers]

            def moved(sender: jax.Array, layer: int = layer, own: list[bool] = own) -> jax.Array:
                patched = jnp.asarray(own)[:, None] * sender
                return _pattern(problem, layer, patched) - _pattern(problem, layer, jnp.zeros_like(patched))

            found[layer, letter] = jax.jit(lambda rows, moved=moved: jax.lax.map(moved, rows))(senders)
    return found


def _pattern(problem: Problem, layer: int, patched: jax.Array) -> jax.Array:
    """A layer's attention patterns with some edges patched: `[pair, head, query, key]`."""
    kept: list[jax.Array] = []

    def keep(name: str, value: jax.Array) -> jax.Array:
        if name == act_name("pattern", layer):
            kept.append(value)
        return value

    patched_run(problem.transformer, keep)(jnp.asarray(problem.tokens), patched, problem.instead)
    return kept[0]


def _sizes(
    problem: Problem, gradients: Gradients, change: jax.Array, patterns: Mapping[tuple[int, str], jax.Array]
) -> Float[np.ndarray, "receiver sender"]:
    """The size of each edge's effect on each pair, summed over pairs."""
    by_added, by_patterns = gradients
    found = np.array(jnp.abs(jnp.einsum("rbpd,sbpd->rsb", by_added, change)).sum(axis=-1))
    for (layer, letter), moved in patterns.items():
        effects = jnp.einsum("sbhqk,bhqk->hsb", moved, by_patterns[act_name("pattern", layer)])
        for head, sizes in enumerate(np.asarray(jnp.abs(effects).sum(axis=-1))):
            found[problem.graph.receivers.index(f"L{layer}H{head}.{letter}")] = sizes
    return found
