import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.model import Config
from rasplens.model.forward import forward
from rasplens.model.jax_forward import jax_forward

CONFIG = Config(n_layers=1, n_heads=2, d_model=6, d_head=4, n_ctx=5, d_vocab=7, d_vocab_out=3)


@pytest.mark.slow
def test_it_can_be_vmapped_over_models(random_transformer):
    models = [random_transformer(CONFIG, seed=seed, dtype=np.float32) for seed in range(3)]
    stacked = {name: jnp.stack([m.weights[name] for m in models]) for name in models[0].weights}
    tokens = np.array([[1, 2, 3]])
    logits = jax.vmap(jax_forward(CONFIG, models[0].mask), in_axes=(0, None))(stacked, jnp.asarray(tokens))
    for model, row in zip(models, logits, strict=True):
        np.testing.assert_allclose(row, model(tokens), rtol=0, atol=1e-5)


def test_an_activation_can_be_edited(random_transformer):
    model = random_transformer(CONFIG, dtype=np.float32)
    weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
    tokens = jnp.array([[1, 2, 3]])

    def silence(name, value):
        return value * 0 if name == "blocks.0.attn.hook_z" else value

    edited = jax.jit(jax_forward(CONFIG, model.mask, silence))(weights, tokens)
    embedded = model.W_E[np.asarray(tokens)] + model.weights["pos_embed.W_pos"][:3]
    np.testing.assert_allclose(edited, embedded @ model.W_U, rtol=0, atol=1e-5)


def test_products_have_full_precision_on_every_device(random_transformer):
    """An accelerator's default rounds them: a compiled model was off by 3e-4 there, where torch was exact."""
    model = random_transformer(CONFIG, dtype=np.float32)
    weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
    tokens = jnp.array([[1, 2, 3]])

    def products(function):
        steps = str(jax.make_jaxpr(function)(weights, tokens)).split("dot_general[")[1:]
        return ["HIGHEST" in step.partition(" = ")[0] for step in steps]

    own = products(jax_forward(CONFIG, model.mask))
    assert len(own) >= 6
    assert all(own)
    mask = jnp.asarray(model.mask)  # the negative control: the same pass, as JAX would have it
    assert not any(products(lambda weights, tokens: forward(weights, mask, CONFIG, tokens, xp=jnp)))
