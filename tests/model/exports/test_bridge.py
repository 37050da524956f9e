"""TransformerLens's own implementation as an oracle: it shares no code with ours."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rasplens.model import Config, Transformer, bidirectional_mask, to_bridge
from rasplens.model.exports.bridge import relative_difference

CONFIG = Config(n_layers=2, n_heads=2, d_model=6, d_head=4, n_ctx=5, d_vocab=7, d_vocab_out=3, d_mlp=8)


def without_unembedding_bias(model: Transformer) -> Transformer:
    weights = {name: array for name, array in model.weights.items() if name != "unembed.b_U"}
    return Transformer(model.config, weights, model.mask)


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        replace(CONFIG, d_mlp=0),
        replace(CONFIG, attn_scale=1.0),
        replace(CONFIG, positions="none"),
        replace(CONFIG, normalization="LN"),
        replace(CONFIG, activation="gelu_new"),
        replace(CONFIG, activation="gelu"),
        replace(CONFIG, activation="silu"),
        replace(CONFIG, normalization="LNPre", d_mlp=0),
    ],
    ids=["mlp", "attention-only", "unscaled", "no positions", "layer norm", "gelu_new", "gelu", "silu", "LNPre"],
)
@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_the_bridge_gives_the_same_logits(random_transformer, config, biases, is_bidirectional):
    mask = {"mask": bidirectional_mask(2, 5)} if is_bidirectional else {}
    model = without_unembedding_bias(random_transformer(config, biases=biases, dtype=np.float32, **mask))
    bridge = to_bridge(model)
    tokens = np.random.default_rng(1).integers(0, 7, (3, 5))
    with torch.no_grad():
        np.testing.assert_allclose(bridge(torch.tensor(tokens)).numpy(), model(tokens), rtol=1e-5, atol=1e-5)


def test_its_hooks_are_transformer_lenss(random_transformer):
    model = without_unembedding_bias(random_transformer(CONFIG, dtype=np.float32))
    tokens = np.array([[1, 2, 3, 4, 0]])
    _, cache = to_bridge(model).run_with_cache(torch.tensor(tokens))
    _, ours = model.run_with_cache(tokens)
    name = "blocks.1.attn.hook_pattern"
    np.testing.assert_allclose(cache[name].numpy(), ours[name], atol=1e-5)


def test_a_difference_in_the_logits_is_refused(random_transformer, monkeypatch):
    from rasplens.model.exports import bridge

    monkeypatch.setattr(bridge, "PARITY", -1.0)
    with pytest.raises(ValueError, match=r"logits.*e[-+]\d+.*-1\.0"):
        to_bridge(without_unembedding_bias(random_transformer(CONFIG, dtype=np.float32)))


def test_a_difference_is_relative_to_the_spread_of_logits_and_nan_is_one():
    expected = np.array([[1000.0, 1002.0], [1001.0, 1001.0]])
    assert relative_difference(expected + np.array([0, 0.1]), expected) == pytest.approx(0.1)
    assert relative_difference(expected, expected) == 0
    assert np.isnan(relative_difference(expected * np.array([1, np.nan]), expected))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"smeared_keys": True}, r"bridge.*has smeared keys"),
        ({"positions": "sinusoidal_qk"}, "sinusoidal_qk positions"),
        ({"positions": "rotary"}, "rotary positions"),
        ({}, "unembedding bias"),
    ],
)
def test_what_it_cannot_express_is_refused(random_transformer, change, message):
    with pytest.raises(ValueError, match=message):
        to_bridge(random_transformer(replace(CONFIG, **change), biases=True))


def test_other_masks_are_refused(random_transformer):
    strict = np.repeat(np.tri(5, k=-1, dtype=bool)[None], 2, axis=0)
    with pytest.raises(ValueError, match=r"causal.*bidirectional.*mask"):
        to_bridge(random_transformer(CONFIG, mask=strict))
