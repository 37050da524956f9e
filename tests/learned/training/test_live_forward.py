"""The fast forward pass against the plain one: the same loss and gradients, whatever the architecture."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.learned import get_recipe, untrained
from rasplens.learned.training import live_forward as module
from rasplens.learned.training.live_forward import carries_logits, live_forward
from rasplens.model import Config, bidirectional_mask, causal_mask
from rasplens.model.jax_forward import jax_forward
from rasplens.tasks import get_task

BASE = Config(n_layers=2, n_heads=2, d_model=8, d_head=4, n_ctx=7, d_vocab=6, d_vocab_out=5)
WIDE = replace(BASE, n_layers=1, d_model=40, d_head=36)


def irregular_mask(n_layers: int, n_ctx: int) -> np.ndarray:
    """Silent rows, rows that see one key, and keys out of order."""
    mask = causal_mask(n_layers, n_ctx)
    mask[0, 3] = False
    mask[-1, 5] = False
    mask[-1, 5, 1] = True
    mask[-1, 6, 1:4] = False
    return mask


ARCHITECTURES = {
    "plain": BASE,
    "one layer": replace(BASE, n_layers=1),
    "three layers": replace(BASE, n_layers=3),
    "scores from tables, values as logits": WIDE,
    "scores from tables, sinusoids": replace(WIDE, positions="sinusoidal_qk"),
    "values as logits, two layers": replace(WIDE, n_layers=2),
    "mlp": replace(BASE, d_mlp=12),
    "layer norm": replace(BASE, normalization="LN"),
    "layer norm and mlp": replace(BASE, normalization="LNPre", d_mlp=12),
    "no positions": replace(BASE, positions="none"),
    "sinusoids": replace(BASE, positions="sinusoidal_qk"),
    "shortformer": replace(BASE, positions="shortformer"),
    "scores from tables, shortformer": replace(WIDE, positions="shortformer"),
    "shortformer, layer norm": replace(BASE, positions="shortformer", normalization="LN"),
    "rotary": replace(BASE, positions="rotary"),
    "rotary, wide heads, half of each": replace(WIDE, positions="rotary", rotary_dim=18),
    "rotary, smeared keys": replace(BASE, positions="rotary", smeared_keys=True),
    "gelu_new": replace(BASE, d_mlp=12, activation="gelu_new"),
    "gelu": replace(BASE, d_mlp=12, activation="gelu"),
    "silu": replace(BASE, d_mlp=12, activation="silu"),
    "smeared keys": replace(BASE, smeared_keys=True),
    "smeared keys with sinusoids": replace(BASE, smeared_keys=True, positions="sinusoidal_qk", n_layers=1),
    "smeared wide keys": replace(WIDE, smeared_keys=True),
    "identity": replace(BASE, n_heads=1, d_head=8, identity_v=True, identity_o=True),
    "identity of two heads": replace(BASE, d_head=8, identity_v=True, identity_o=True),
    "identity that cuts": replace(BASE, identity_v=True),
    "unscaled": replace(BASE, attn_scale=1.0),
}
LOSS_POSITIONS = {"last": (6,), "some": (2, 5, 6), "all": tuple(range(7)), "out of order": (6, 3)}


CASES = [
    *((config, LOSS_POSITIONS["some"], irregular_mask) for config in ARCHITECTURES.values()),
    *((BASE, positions, irregular_mask) for positions in LOSS_POSITIONS.values()),
    *((BASE, LOSS_POSITIONS["last"], mask) for mask in (causal_mask, bidirectional_mask)),
    (replace(BASE, n_layers=0), LOSS_POSITIONS["out of order"], causal_mask),
]
SOON = [0, 3, 12]
"""Those that are tried in the fast suite; compiling takes seconds for each."""


def loss_and_gradients(logits, weights, tokens):
    def loss(weights):
        predicted = jax.nn.log_softmax(logits(weights, tokens))
        return -(predicted * jnp.cos(jnp.arange(predicted.size)).reshape(predicted.shape)).mean()

    return jax.jit(jax.value_and_grad(loss))(weights)


@pytest.mark.parametrize(
    ("config", "positions", "make_mask"),
    [pytest.param(*case, marks=() if i in SOON else pytest.mark.slow) for i, case in enumerate(CASES)],
)
def test_loss_and_gradients_are_those_of_the_plain_forward_pass(random_transformer, config, positions, make_mask):
    model = random_transformer(config, mask=make_mask(config.n_layers, 7), biases=True)
    with jax.enable_x64(True):
        weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
        tokens = jnp.asarray(np.random.default_rng(0).integers(0, 6, (9, 7)))
        plain = jax_forward(config, model.mask)
        expected, slopes = loss_and_gradients(lambda w, t: plain(w, t)[:, np.array(positions)], weights, tokens)
        found, gradients = loss_and_gradients(live_forward(config, model.mask, positions), weights, tokens)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    for name in set(slopes) - set(config.frozen):
        np.testing.assert_allclose(gradients[name], slopes[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sort", pytest.param("copy", marks=pytest.mark.slow), "compression"])
def test_in_single_precision_too_on_the_tasks_themselves(name):
    """To 1e-5 in the loss, and to 1e-5 of the largest slope of each weight."""
    task = get_task(name)
    model = untrained(get_recipe(name, "published").architecture, task, 0)
    weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
    tokens = jnp.asarray(task.held_out[:32])
    positions = task.loss_positions
    plain = jax_forward(model.config, model.mask)
    expected, slopes = loss_and_gradients(lambda w, t: plain(w, t)[:, np.array(positions)], weights, tokens)
    found, gradients = loss_and_gradients(live_forward(model.config, model.mask, positions), weights, tokens)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    for weight in set(slopes) - set(model.config.frozen):
        largest = float(jnp.abs(slopes[weight]).max())
        np.testing.assert_allclose(gradients[weight], slopes[weight], rtol=0, atol=1e-5 * largest, err_msg=weight)


@pytest.mark.slow
@pytest.mark.parametrize("tokens_per_key", [True, False])
def test_scores_come_from_tables_where_those_are_smaller(random_transformer, monkeypatch, tokens_per_key):
    """Both ways are taken by some test above: here, the switch itself."""
    taken = []
    original = module._Layer._looked_up_scores
    monkeypatch.setattr(
        module._Layer, "_looked_up_scores", lambda self, stream: taken.append(1) or original(self, stream)
    )
    model = random_transformer(replace(WIDE, d_vocab=6 if tokens_per_key else 60), dtype=np.float32)
    live_forward(model.config, model.mask, (6,))(
        {name: jnp.asarray(array) for name, array in model.weights.items()}, jnp.zeros((9, 7), dtype=int)
    )
    assert bool(taken) == tokens_per_key


def test_values_are_carried_as_logits_only_where_all_behind_is_linear_and_logits_are_narrower():
    assert carries_logits(WIDE)
    assert not carries_logits(replace(WIDE, d_head=4))
    assert not carries_logits(replace(WIDE, d_mlp=8))
    assert not carries_logits(replace(WIDE, normalization="LN"))
