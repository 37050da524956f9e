"""Activation-matched distillation: a model trained to do what another one does inside.

It matches the attention, and the residual stream in another basis. What a compiled model computes is known, and so
is what a model distilled from it computes; but that one's weights are learned, noisy and spread out.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Int

from rasplens.learned.initialisation import untrained_like
from rasplens.model import Transformer, bias_shapes, disguise
from rasplens.model.forward import forward
from rasplens.model.random_streams import rng

BATCH, RATE, WARMUP = 128, 1e-2, 100

WIDER = 4
"""How many neurons there are for each of the model's: learned ones are not as exact."""

Weights = dict[str, jax.Array]


def distill_activations(
    model: Transformer, tokens: Int[np.ndarray, "input pos"], seed: int = 0, steps: int = 3_000
) -> Transformer:
    """A model of the same shape, but for more neurons, trained to match attention, residual stream and logits.

    The residual stream is matched in a random rotation of its basis. Errors are relative to the variance of what
    is matched, so that every hook point counts alike.

    Args:
        model: The teacher; without layer norm.
        tokens: Inputs to train on.
        seed: Of the rotation, the weights and the order of inputs.
        steps: Of Adam, with a rate that rises and then falls to zero.
    """
    teacher = disguise(model.astype(np.float32), seed, kinds=("residual",))
    start = untrained_like(replace(teacher.config, d_mlp=WIDER * teacher.config.d_mlp), model.mask, seed)
    shapes = {name: shape for name, shape in bias_shapes(start.config).items() if name in teacher.weights}
    zeros = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    student = Transformer(start.config, {**start.weights, **zeros}, model.mask)
    observe = _observer(teacher)
    wanted = jax.jit(observe)(dict(teacher.weights), tokens)
    scales = {name: 1 / jnp.maximum(array.var(), 1e-6) for name, array in wanted.items()}
    optimiser = optax.adam(optax.warmup_cosine_decay_schedule(0.0, RATE, WARMUP, max(steps, WARMUP + 1)))

    def loss(weights: Weights, rows: jax.Array) -> jax.Array:
        found = observe(weights, jnp.asarray(tokens)[rows])
        errors = [((found[name] - wanted[name][rows]) ** 2).mean() * scale for name, scale in scales.items()]
        return jnp.stack(errors).mean()

    def step(state: tuple, rows: jax.Array) -> tuple[tuple, None]:
        weights, moments = state
        updates, moments = optimiser.update(jax.grad(loss)(weights, rows), moments)
        return (optax.apply_updates(weights, updates), moments), None

    weights = {name: jnp.asarray(array) for name, array in student.weights.items()}
    drawn = rng(seed, "distillation").integers(0, len(tokens), (steps, min(BATCH, len(tokens))))
    rows = jnp.asarray(drawn)
    (weights, _), _ = jax.jit(lambda state: jax.lax.scan(step, state, rows))((weights, optimiser.init(weights)))
    return Transformer(student.config, {name: np.asarray(array) for name, array in weights.items()}, model.mask)


def _observer(model: Transformer) -> Callable[[Weights, jax.Array], dict[str, jax.Array]]:
    """What there is to match, from weights and tokens: residual stream, patterns, logits."""
    mask, config = jnp.asarray(model.mask), model.config

    def observe(weights: Weights, tokens: jax.Array) -> dict[str, jax.Array]:
        found: dict[str, jax.Array] = {}

        def hook(name: str, value: jax.Array) -> jax.Array:
            if "hook_resid" in name or name.endswith("hook_pattern"):
                found[name] = value
            return value

        logits = forward(weights, mask, config, tokens, hook, jnp, per_head=False)
        return {**found, "logits": logits}

    return observe
