"""The optimiser, and one step of it down a loss: the only place at which weights are updated."""

from collections.abc import Callable
from typing import Any

import jax
import optax

from rasplens.learned.optimisation import Optimisation

Weights = Any
"""A tree of arrays."""

State = tuple[Weights, Any]
"""Weights, and the optimiser's moments."""


def adamw(
    recipe: Optimisation, rate: float | optax.Schedule = 1.0, b1: float = 0.9, clip: float = 0.0
) -> optax.GradientTransformation:
    """Return AdamW with a recipe's weight decay and second moment.

    Args:
        recipe: Of any kind.
        rate: The learning rate; 1 where `updated` is given a factor at each step.
        b1: Decay of the first moment.
        clip: Global norm that gradients are clipped to; 0 for no clipping.
    """
    found = optax.adamw(rate, b1=b1, b2=recipe.b2, weight_decay=recipe.weight_decay)
    return optax.chain(optax.clip_by_global_norm(clip), found) if clip else found


def cosine(recipe: Optimisation, steps: int) -> optax.Schedule:
    """Return the rate that rises to a recipe's peak in its warm-up and falls to zero over so many steps."""
    return optax.warmup_cosine_decay_schedule(0.0, recipe.learning_rate, recipe.warmup, steps)


def updated(
    optimiser: optax.GradientTransformation,
    weights: Weights,
    moments: Any,
    gradient: Weights,
    rate: jax.Array | float | None = None,
) -> State:
    """Return weights after one update, and the optimiser's moments.

    Args:
        optimiser: The optimiser.
        weights: The weights.
        moments: Of the optimiser.
        gradient: Of the loss at these weights.
        rate: A factor of the update; None for the optimiser's own rate.
    """
    updates, moments = optimiser.update(gradient, moments, weights)
    if rate is not None:
        updates = jax.tree.map(lambda update: rate * update, updates)
    return optax.apply_updates(weights, updates), moments


def stepwise(
    loss: Callable[..., tuple[jax.Array, Any]],
    optimiser: optax.GradientTransformation,
    averaged: Callable[[Any], Any] = lambda found: found,
) -> Callable[[State, tuple[Any, ...]], tuple[State, Any]]:
    """Return the step down a loss, for `jax.lax.scan` over batches.

    Args:
        loss: From weights and a batch to the loss, and what to report of it.
        optimiser: With its rate.
        averaged: Of value and gradient together, their mean over devices.
    """

    def step(state: State, batch: tuple[Any, ...]) -> tuple[State, Any]:
        (_, told), gradient = averaged(jax.value_and_grad(loss, has_aux=True)(state[0], *batch))
        return updated(optimiser, *state, gradient), told

    return step
