"""Every re-writing computes the same function, on every kind of transformer that it takes."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.model import Config, causal_mask, disguise, twins

SIZES = Config(n_layers=2, n_heads=3, d_model=10, d_head=4, n_ctx=6, d_vocab=7, d_vocab_out=5)
CONFIGS = {
    "attention only": SIZES,
    "mlp": replace(SIZES, d_mlp=9),
    "smeared keys": replace(SIZES, smeared_keys=True),
    "no positions": replace(SIZES, positions="none"),
    "identity v": replace(SIZES, d_head=10, identity_v=True),
    "identity v and o": replace(SIZES, n_heads=1, d_head=10, identity_v=True, identity_o=True),
    "one head": replace(SIZES, n_heads=1),
    "layer norm": replace(SIZES, normalization="LN", d_mlp=9),
}
REWRITINGS = {
    "split": lambda model: twins.split_head(model, 1, 0),
    "split in three": lambda model: twins.split_head(model, 0, 0, parts=3, seed=1),
    "split and merged": lambda model: twins.merge_heads(twins.split_head(model, 1, 0), 1, 0, model.config.n_heads),
    "doubled": lambda model: twins.duplicate_head(model, 0, 0),
    "doubled unevenly": lambda model: twins.duplicate_head(model, 1, 0, share=1.5),
    "idle heads": lambda model: twins.insert_idle_heads(model, 2),
    "without idle heads": lambda model: twins.without_idle_heads(twins.insert_idle_heads(model)),
    "idle layer before": lambda model: twins.insert_idle_layer(model, 0),
    "idle layer between": lambda model: twins.insert_idle_layer(model, 1),
    "idle layer after": lambda model: twins.insert_idle_layer(model, 2),
    "decoy": lambda model: twins.plant_decoy(model, 0, 0),
    "dormant pathway": lambda model: twins.plant_dormant_pathway(model, 0, 0),
    "redundant pathway": lambda model: twins.plant_redundant_pathway(model, 0, 0),
    "redundant pathway from the last layer": lambda model: twins.plant_redundant_pathway(model, 1, 0, 0.3),
    "several": lambda model: twins.insert_idle_layer(
        twins.split_head(twins.plant_decoy(twins.duplicate_head(model, 1, 0), 0, 0), 0, 0), 1
    ),
}
NEED_FRESH_DIRECTIONS = {
    "decoy", "dormant pathway", "redundant pathway", "redundant pathway from the last layer", "several",
}  # fmt: skip
TOKENS = np.random.default_rng(5).integers(0, 7, (12, 6))
RELATIVE = {np.float64: 1e-9, np.float32: 1e-5}
"""How far logits may be off, as a share of the largest: a few products of well-conditioned matrices."""


def assert_same(model, twin, tokens=TOKENS):
    wanted, got = model(tokens), twin(tokens)
    assert np.abs(got - wanted).max() <= RELATIVE[model.dtype.type] * np.abs(wanted).max()


@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", REWRITINGS)
def test_the_logits_stay_on_inputs_of_every_length(random_transformer, name, config, dtype):
    model = random_transformer(config, biases=True, dtype=dtype)
    if config.normalization == "LN" and name in NEED_FRESH_DIRECTIONS:
        with pytest.raises(ValueError, match=r"[Ll]ayer norm.*direction"):
            REWRITINGS[name](model)
        return
    twin = REWRITINGS[name](model)
    assert twin.dtype == dtype
    for length in (1, 3, 6):
        assert_same(model, twin, TOKENS[:, :length])
    if config.normalization == "none":
        assert_same(model, disguise(twin, seed=1))


@pytest.mark.parametrize("name", REWRITINGS)
def test_masks_of_its_own_are_kept(random_transformer, name):
    mask = np.random.default_rng(0).random((2, 6, 6)) < 0.6
    mask[0, 2] = False  # a row that stays silent
    model = random_transformer(CONFIGS["mlp"], mask=mask)
    assert_same(model, REWRITINGS[name](model))


def test_without_idle_heads_an_insertion_and_a_merger_leave_nothing(random_transformer):
    model = random_transformer(SIZES)
    whole = twins.merge_heads(twins.split_head(model, 0, 1), 0, 1, 3)
    assert whole.config.n_heads == 4  # the other layer has not lost its idle one
    for twin in (whole, twins.insert_idle_heads(model, 3)):
        assert twins.without_idle_heads(twin).config == model.config
    silent = replace(model, weights={**model.weights, "blocks.0.attn.W_O": 0 * model.weights["blocks.0.attn.W_O"]})
    assert twins.without_idle_heads(silent).config.n_heads == 3
    assert twins.without_idle_heads(random_transformer(replace(SIZES, n_layers=0))).config.n_heads == 3


def test_a_layer_can_be_inserted_where_there_is_none(random_transformer):
    model = random_transformer(replace(SIZES, n_layers=0, d_mlp=4))
    twin = twins.insert_idle_layer(model, 0)
    assert_same(model, twin)
    np.testing.assert_array_equal(twin.mask, causal_mask(1, 6))


def test_sinusoids_fix_the_heads(random_transformer):
    model = random_transformer(replace(SIZES, positions="sinusoidal_qk"))
    for rewriting in (REWRITINGS["split"], REWRITINGS["idle heads"], REWRITINGS["decoy"]):
        with pytest.raises(ValueError, match=r"positions.*heads"):
            rewriting(model)
    assert_same(model, twins.insert_idle_layer(model, 1))


def test_there_are_no_other_heads_and_layers(random_transformer):
    model = random_transformer(SIZES)
    with pytest.raises(ValueError, match=r"layers 0 to 1.* 2"):
        twins.split_head(model, 2, 0)
    with pytest.raises(ValueError, match=r"heads 0 to 2.*-1"):
        twins.plant_decoy(model, 0, -1)
    with pytest.raises(ValueError, match=r" 0 to 2.* 3"):
        twins.insert_idle_layer(model, 3)
