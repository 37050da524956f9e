"""A step down a loss is the optimiser's, whatever is told beside it."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rasplens.learned.training.fit import stepwise, updated


def loss(weights, target):
    off = weights["a"] - target
    return (off**2).sum(), off


@pytest.fixture
def weights():
    return {"a": jnp.array([1.0, -2.0])}


def test_a_step_of_gradient_descent(weights):
    step = stepwise(loss, optax.sgd(0.25))
    (after, _), told = step((weights, optax.sgd(0.25).init(weights)), (jnp.zeros(2),))
    np.testing.assert_allclose(after["a"], [0.5, -1.0])  # halfway, since the gradient is twice as far
    np.testing.assert_array_equal(told, weights["a"])


def test_steps_can_be_scanned_and_reach_the_bottom(weights):
    optimiser = optax.adam(0.1)
    targets = jnp.tile(jnp.array([3.0, 4.0]), (300, 1))
    (after, _), told = jax.lax.scan(stepwise(loss, optimiser), (weights, optimiser.init(weights)), (targets,))
    np.testing.assert_allclose(after["a"], [3, 4], atol=1e-2)
    assert told.shape == (300, 2)


def test_what_is_averaged_is_value_and_gradient_together(weights):
    double = stepwise(loss, optax.sgd(0.25), lambda found: jax.tree.map(lambda x: 2 * x, found))
    (after, _), told = double((weights, optax.sgd(0.25).init(weights)), (jnp.zeros(2),))
    np.testing.assert_allclose(after["a"], 0)
    np.testing.assert_array_equal(told, 2 * weights["a"])


def test_a_rate_is_a_factor_of_the_update(weights):
    ascent = optax.identity()  # the update is the gradient
    gradient = {"a": jnp.ones(2)}
    for rate, expected in ((None, [2.0, -1.0]), (-0.5, [0.5, -2.5]), (0.0, [1.0, -2.0])):
        after, _ = updated(ascent, weights, ascent.init(weights), gradient, rate)
        np.testing.assert_allclose(after["a"], expected)
