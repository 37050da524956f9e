import numpy as np
import pytest

from rasplens.model import Config, Transformer, twins

SIZES = Config(n_layers=2, n_heads=3, d_model=10, d_head=4, n_ctx=6, d_vocab=7, d_vocab_out=5, d_mlp=9)
TOKENS = np.random.default_rng(5).integers(0, 7, (12, 6))


@pytest.fixture
def model(random_transformer):
    return random_transformer(SIZES, biases=True)


def cache(model):
    return model.run_with_cache(TOKENS)[1]


def changed(model, name, place, value=0.0):
    weights = {key: np.array(array) for key, array in model.weights.items()}
    weights[name][place] = value
    return Transformer(model.config, weights, model.mask)


def test_a_decoy_gathers_what_its_original_gathers_and_no_answer_depends_on_it(model):
    twin = twins.plant_decoy(model, 0, 1)
    found = cache(twin)
    for point in ("pattern", "z"):
        values = found[f"blocks.0.attn.hook_{point}"]
        head = (slice(None), 1) if point == "pattern" else (slice(None), slice(None), 1)
        decoy = (slice(None), 3) if point == "pattern" else (slice(None), slice(None), 3)
        np.testing.assert_array_equal(values[decoy], values[head])
    assert found["blocks.1.hook_resid_post"][..., 10:].std() > 0.05
    without = changed(twin, "blocks.0.attn.W_O", 3)
    np.testing.assert_array_equal(without(TOKENS), twin(TOKENS))
    assert np.abs(changed(twin, "blocks.0.attn.W_O", 1)(TOKENS) - twin(TOKENS)).max() > 0.1


def test_a_dormant_pathway_is_never_set_but_would_act(model):
    twin = twins.plant_dormant_pathway(model, 1, 1)
    found = cache(twin)
    assert not found["blocks.1.hook_resid_post"][..., 10:].any()
    assert not found["blocks.1.attn.hook_z"][:, :, 3].any()
    awake = changed(twin, "embed.W_E", (3, 12), 5.0)
    assert np.abs(awake(TOKENS) - twin(TOKENS)).max() > 0.1


@pytest.mark.parametrize("layer", [0, 1])
def test_a_redundant_pathway_carries_its_share(model, layer):
    twin = twins.plant_redundant_pathway(model, layer, 1, share=0.5)
    halves = [changed(twin, f"blocks.{layer}.attn.W_O", head)(TOKENS) for head in (1, 3)]
    for half in halves:
        assert np.abs(half - twin(TOKENS)).max() > 0.05
    # Without either half the rest is the model whose head writes half as much.
    weights = {key: np.array(array) for key, array in model.weights.items()}
    weights[f"blocks.{layer}.attn.W_O"][1] /= 2
    half_as_much = Transformer(model.config, weights, model.mask)(TOKENS)
    for half in halves:
        np.testing.assert_allclose(half, half_as_much, atol=1e-9)
