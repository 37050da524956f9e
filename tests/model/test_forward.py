"""The one page of mathematics: a model computable on paper, and agreement of its three backends.

Tolerances: float64 backends differ only in the order of sums (1e-10); float32 has 24-bit mantissas and
these models sum over tens of terms of order one (1e-5).
"""

import array_api_compat.torch as array_api_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from every_architecture import FEATURES, base, silent_row_mask

from rasplens.learned import untrained_like
from rasplens.model import Config, HookedModel, Transformer, causal_mask
from rasplens.model.forward import (
    ForwardPass,
    activated,
    masked_softmax,
    no_hook,
    rotary_angles,
    rotated,
    sinusoids,
)
from rasplens.model.jax_forward import jax_forward

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}


@pytest.fixture(params=FEATURES)
def model(request, random_transformer) -> Transformer:
    config, options = FEATURES[request.param]
    return random_transformer(config, **options)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n_pos", [1, 4, 5])
def test_torch_agrees_with_the_numpy_reference(model, dtype, n_pos):
    model = model.astype(dtype)
    tokens = np.random.default_rng(1).integers(0, 7, (3, n_pos))
    with torch.no_grad():
        logits = HookedModel(model)(torch.tensor(tokens)).numpy()
    assert logits.dtype == dtype
    np.testing.assert_allclose(logits, model(tokens), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize(("n_pos", "dtype"), [(1, np.float64), (5, np.float64), (5, np.float32)])
def test_jax_agrees_with_the_numpy_reference(model, dtype, n_pos):
    model = model.astype(dtype)
    tokens = np.random.default_rng(1).integers(0, 7, (3, n_pos))
    with jax.enable_x64(dtype == np.float64):
        weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
        logits = np.asarray(jax.jit(jax_forward(model.config, model.mask))(weights, jnp.asarray(tokens)))
    assert logits.dtype == dtype
    np.testing.assert_allclose(logits, model(tokens), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.slow
def test_gradients_are_finite_through_silent_rows(random_transformer):
    model = random_transformer(base(), mask=silent_row_mask(2, 5), dtype=np.float32)
    weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
    logits = jax_forward(model.config, model.mask)
    gradients = jax.jit(jax.grad(lambda w: logits(w, jnp.array([[1, 2, 3, 4, 0]])).sum()))(weights)
    assert all(bool(jnp.isfinite(g).all()) for g in gradients.values())
    assert float(jnp.abs(gradients["blocks.0.attn.W_Q"]).max()) > 0


def test_a_model_computable_on_paper():
    """One head averages what it sees; the values are the token's number, the logit adds the residual.

    Queries are zero, so attention is uniform over the causal past: for tokens (1, 2, 0) the head writes
    1, 3/2, 1 and the residual adds the token itself: 2, 7/2, 1.
    """
    config = Config(n_layers=1, n_heads=1, d_model=1, d_head=1, n_ctx=3, d_vocab=3, d_vocab_out=1)
    weights = {
        "embed.W_E": np.array([[0.0], [1.0], [2.0]]),
        "pos_embed.W_pos": np.zeros((3, 1)),
        "blocks.0.attn.W_Q": np.zeros((1, 1, 1)),
        "blocks.0.attn.W_K": np.ones((1, 1, 1)),
        "blocks.0.attn.W_V": np.ones((1, 1, 1)),
        "blocks.0.attn.W_O": np.ones((1, 1, 1)),
        "unembed.W_U": np.ones((1, 1)),
    }
    model = Transformer(config, weights, causal_mask(1, 3))
    np.testing.assert_allclose(model(np.array([[1, 2, 0]]))[0, :, 0], [2, 3.5, 1])


def test_smeared_keys_on_paper():
    """sigmoid(ln 3) = 3/4 of each key comes from the position before; the first keeps its own.

    Keys 1, 2, 4 become 1, 1/4·2 + 3/4·1, 1/4·4 + 3/4·2, and a query of one scores just that.
    """
    config = Config(1, 1, 1, 1, 3, 3, 1, smeared_keys=True)
    weights = {
        "embed.W_E": np.array([[1.0], [2.0], [4.0]]),
        "pos_embed.W_pos": np.zeros((3, 1)),
        "blocks.0.attn.W_Q": np.zeros((1, 1, 1)),
        "blocks.0.attn.b_Q": np.ones((1, 1)),
        "blocks.0.attn.W_K": np.ones((1, 1, 1)),
        "blocks.0.attn.W_V": np.ones((1, 1, 1)),
        "blocks.0.attn.W_O": np.ones((1, 1, 1)),
        "blocks.0.attn.smear": np.full((1, 3), np.log(3)),
        "unembed.W_U": np.ones((1, 1)),
    }
    _, cache = Transformer(config, weights, causal_mask(1, 3)).run_with_cache(np.array([[0, 1, 2]]))
    np.testing.assert_allclose(cache["blocks.0.attn.hook_attn_scores"][0, 0, 2], [1, 1.25, 2.5])


def test_softmax_over_what_the_mask_leaves():
    rows = np.array([[0.0, 0.0, -np.inf], [-np.inf, -np.inf, -np.inf], [1000.0, -np.inf, 0.0]])
    np.testing.assert_allclose(masked_softmax(rows), [[0.5, 0.5, 0], [0, 0, 0], [1, 0, 0]])


def test_sinusoids_have_the_published_form():
    waves = sinusoids(8, 4)
    position = 5
    expected = [np.sin(position), np.cos(position), np.sin(position / 100), np.cos(position / 100)]
    np.testing.assert_allclose(waves[position], expected)


@pytest.mark.parametrize("xp", [np, array_api_torch], ids=["numpy", "torch"])
@pytest.mark.parametrize("layer", [0, 1])
def test_going_on_behind_the_attention_of_a_layer_gives_the_same_logits(model, layer, xp):
    config = model.config
    if layer >= config.n_layers:
        pytest.skip("there is no such layer")
    tokens = np.random.default_rng(0).integers(0, config.d_vocab, (3, config.n_ctx))
    logits, cache = model.run_with_cache(tokens)
    residual, gathered = (
        xp.asarray(cache[f"blocks.{layer}.{name}"]) for name in ("hook_resid_pre", "attn.hook_z")
    )
    mask = xp.asarray(model.mask.copy())
    weights = {name: xp.asarray(array.copy()) for name, array in model.weights.items()}

    run = ForwardPass(weights, mask, config, xp=xp, per_head=False)

    def again(residual, gathered):
        return np.asarray(run.logits_from(layer, residual, gathered))

    np.testing.assert_allclose(again(residual, gathered), logits, rtol=0, atol=1e-10)
    np.testing.assert_allclose(again(residual, None), logits, rtol=0, atol=1e-10)
    assert np.abs(again(0 * residual, None) - logits).max() > 1e-3
    assert np.abs(again(residual, 0 * gathered) - logits).max() > 1e-3
    if layer == config.n_layers - 1:  # nothing passes between positions any more
        alone = again(residual[:, 2:4], gathered[:, 2:4])
        np.testing.assert_allclose(alone, logits[:, 2:4], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu", torch.nn.functional.relu),
        ("gelu", torch.nn.functional.gelu),
        ("gelu_new", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        ("silu", torch.nn.functional.silu),
    ],
)
@pytest.mark.parametrize("xp", [np, array_api_torch, jnp])
def test_activations_are_those_of_torch(name, expected, xp):
    values = torch.linspace(-30, 30, 1_001, dtype=torch.float32)
    found = np.asarray(activated(xp.asarray(values.numpy()), name, xp))
    np.testing.assert_allclose(found, expected(values).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [4, 8])
def test_rotary_positions_are_those_of_gpt_neox(width):
    from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb

    query, key = np.random.default_rng(0).normal(size=(2, 1, 3, 5, 8)).astype(np.float32)
    angles = rotary_angles(5, width)
    twice = torch.tensor(np.concatenate([angles, angles], axis=-1)[None], dtype=torch.float32)
    turned = apply_rotary_pos_emb(
        torch.tensor(query[..., :width]), torch.tensor(key[..., :width]), twice.cos(), twice.sin()
    )
    for ours, theirs in zip((query, key), turned, strict=True):
        found = rotated(ours, angles)
        np.testing.assert_allclose(found[..., :width], theirs.numpy(), atol=1e-6)
        np.testing.assert_array_equal(found[..., width:], ours[..., width:])


def test_rotary_scores_depend_on_the_distance_alone():
    query, key = np.random.default_rng(0).normal(size=(2, 1, 6))
    angles = rotary_angles(9, 6)
    score = [
        [(rotated(query, angles[[i]]) @ rotated(key, angles[[j]]).T).item() for j in range(9)] for i in range(9)
    ]
    for distance in range(-8, 9):
        along = np.diagonal(score, distance)
        np.testing.assert_allclose(along, along[0], atol=1e-12)
    assert abs(score[3][1] - score[1][3]) > 1e-3  # and on its sign


def test_shortformer_positions_reach_queries_and_keys_only(random_transformer):
    model = random_transformer(base(positions="shortformer", n_layers=1), dtype=np.float64)
    tokens = np.array([[1, 2, 3, 4]])
    _, cache = model.run_with_cache(tokens)
    embedded, weights = model.W_E[tokens], model.weights
    placed = embedded + weights["pos_embed.W_pos"][:4]
    for letter, read in (("q", placed), ("k", placed), ("v", embedded)):
        expected = np.einsum("bpd,hde->bphe", read, weights[f"blocks.0.attn.W_{letter.upper()}"])
        np.testing.assert_allclose(cache[f"blocks.0.attn.hook_{letter}"], expected, atol=1e-12)
    np.testing.assert_array_equal(cache["blocks.0.hook_resid_pre"], embedded)


@pytest.mark.parametrize("normalization", ["none", "LN"])
@pytest.mark.parametrize("positions", ["learned", "shortformer", "rotary"])
def test_split_inputs_change_nothing_and_each_copy_is_read_by_its_head_alone(normalization, positions):
    config = Config(
        n_layers=2, n_heads=2, d_model=8, d_head=4, n_ctx=5, d_vocab=6, d_vocab_out=6, d_mlp=8,
        positions=positions, rotary_dim=2 if positions == "rotary" else 0, normalization=normalization,
    )  # fmt: skip
    model = untrained_like(config, causal_mask(2, 5), 0).astype(np.float64)
    tokens = np.random.default_rng(0).integers(0, 6, (3, 5))

    def logits(hook=no_hook, split=True):
        return ForwardPass(model.weights, model.mask, model.config, hook, split=split).logits(tokens)

    whole = logits(split=False)
    np.testing.assert_allclose(logits(), whole, atol=1e-12)
    seen = {}

    def edited(name):
        def hook(at, value):
            seen[at] = value
            if at != name:
                return value
            value = value.copy()
            value[:, :, 1] += np.arange(5)[:, None] * np.arange(8)  # the same for all keys would change nothing
            return value

        return hook

    for letter, others in (("q", "kv"), ("k", "qv"), ("v", "qk")):
        logits(no_hook)
        clean = {}
        logits(lambda at, value, kept=clean: kept.setdefault(at, value))
        assert np.abs(logits(edited(f"blocks.0.hook_{letter}_input")) - whole).max() > 1e-6
        change = np.abs(seen[f"blocks.0.attn.hook_{letter}"] - clean[f"blocks.0.attn.hook_{letter}"])
        assert change[:, :, 0].max() == 0
        assert change[:, :, 1].max() > 1e-3
        for other in others:
            np.testing.assert_array_equal(
                seen[f"blocks.0.attn.hook_{other}"], clean[f"blocks.0.attn.hook_{other}"]
            )
    mlp = logits(lambda at, value: value + np.arange(8) if at == "blocks.1.hook_mlp_in" else value)
    assert np.abs(mlp - whole).max() > 1e-6
