"""Batched products of small matrices, and attention from them, with gradients that run as fast as they do.

Left to itself, XLA on CPU multiplies by a transposed operand element by element, which costs up to three
times the product itself. Here the operand is transposed in memory first.
"""

import jax
import jax.numpy as jnp


@jax.custom_vjp
def times(left: jax.Array, right: jax.Array) -> jax.Array:
    """`left @ right` for `[..., n, m]` and `[..., m, k]` with the same leading axes."""
    return left @ right


@jax.custom_vjp
def times_transposed(left: jax.Array, right: jax.Array) -> jax.Array:
    """`left @ rightᵀ` for `[..., n, m]` and `[..., k, m]` with the same leading axes."""
    return left @ _transposed(right)


@jax.custom_vjp
def attend(scores: jax.Array, values: jax.Array) -> jax.Array:
    """`softmax(scores) @ values` for scores `[..., query, key]` with a finite one in each row.

    The pattern is never normalised in memory: what is divided by the row's total are the mixed values.
    """
    return _attend(scores, values)[0]


Kept = tuple[jax.Array, jax.Array, jax.Array]


def _attend(scores: jax.Array, values: jax.Array) -> tuple[jax.Array, Kept]:
    pattern = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
    share = 1 / pattern.sum(axis=-1, keepdims=True)
    return (pattern @ values) * share, (pattern, share, values)


def _attend_gradient(kept: Kept, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    pattern, share, values = kept
    gradient = gradient * share
    of_pattern = gradient @ _transposed(values)
    expected = (pattern * of_pattern).sum(axis=-1, keepdims=True) * share
    return pattern * (of_pattern - expected), _transposed(pattern) @ gradient


def _transposed(array: jax.Array) -> jax.Array:
    return jax.lax.optimization_barrier(jnp.swapaxes(array, -1, -2))


attend.defvjp(_attend, _attend_gradient)
times.defvjp(
    lambda left, right: (times(left, right), (left, right)),
    lambda kept, gradient: (times_transposed(gradient, kept[1]), _transposed(kept[0]) @ gradient),
)
times_transposed.defvjp(
    lambda left, right: (times_transposed(left, right), (left, right)),
    lambda kept, gradient: (times(gradient, kept[1]), _transposed(gradient) @ kept[0]),
)
