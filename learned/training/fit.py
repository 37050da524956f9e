"""One step of an optimiser down a loss: the only place at which weights are updated."""

from collections.abc import Callable
from typing import Any

import jax
import optax

Weights = Any
"""A tree of arrays."""

State = tuple[Weights, Any]
"""Weights, and the optimiser's moments."""


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
