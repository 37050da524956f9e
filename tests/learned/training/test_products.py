import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.learned.training.products import attend, times, times_transposed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "plain", "shape"),
    [
        (times, lambda left, right: left @ right, (5, 3)),
        (times_transposed, lambda left, right: left @ right.swapaxes(-1, -2), (3, 5)),
        (attend, lambda left, right: jax.nn.softmax(left) @ right, (5, 3)),
    ],
)
@pytest.mark.parametrize("leading", [(), (2,), (2, 4)])
def test_products_and_their_gradients_are_the_plain_ones(ours, plain, shape, leading):
    rng = np.random.default_rng(0)
    left, right = (jnp.asarray(rng.normal(size=(*leading, *s)), dtype=jnp.float32) for s in ((6, 5), shape))
    weight = rng.normal(size=(*leading, 6, 3)).astype(np.float32)
    for function in (lambda a, b: (ours(a, b) * weight).sum(), jax.jit(lambda a, b: (ours(a, b) * weight).sum())):
        value, gradients = jax.value_and_grad(function, argnums=(0, 1))(left, right)
        expected, slopes = jax.value_and_grad(lambda a, b: (plain(a, b) * weight).sum(), argnums=(0, 1))(
            left, right
        )
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        for found, slope in zip(gradients, slopes, strict=True):
            np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_attention_to_hidden_keys_is_nothing_and_has_no_gradient():
    scores = jnp.array([[0.0, -jnp.inf, 1.0], [-jnp.inf, 2.0, -jnp.inf]])
    values = jnp.array([[1.0], [10.0], [100.0]])
    mixed, gradients = jax.value_and_grad(lambda s, v: attend(s, v).sum(), argnums=(0, 1))(scores, values)
    np.testing.assert_allclose(mixed, 1 / (1 + np.e) + 100 * np.e / (1 + np.e) + 10, rtol=1e-6)
    assert np.isfinite(gradients[0]).all()
    assert gradients[0][0, 1] == gradients[0][1, 0] == 0
