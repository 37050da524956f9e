from dataclasses import replace

import numpy as np
import pytest

from rasplens.model import Config, Transformer, twins

SIZES = Config(n_layers=2, n_heads=3, d_model=10, d_head=4, n_ctx=6, d_vocab=7, d_vocab_out=5)
TOKENS = np.random.default_rng(5).integers(0, 7, (12, 6))


@pytest.fixture
def model(random_transformer):
    return random_transformer(SIZES, biases=True)


def activations(model, point):
    return model.run_with_cache(TOKENS)[1][f"blocks.1.attn.hook_{point}"]


def test_the_parts_of_a_head_attend_alike_and_write_parts_of_what_it_wrote(model):
    twin = twins.split_head(model, 1, 2, parts=2)
    before, after = (activations(one, "pattern") for one in (model, twin))
    np.testing.assert_allclose(after[:, [0, 1, 2, 3]], before[:, [0, 1, 2, 2]], atol=1e-9)
    whole, parts = (activations(one, "result") for one in (model, twin))
    np.testing.assert_allclose(parts[:, :, 2] + parts[:, :, 3], whole[:, :, 2], atol=1e-9)
    ranks = [np.linalg.matrix_rank(parts[:, :, head].reshape(-1, 10), tol=1e-6) for head in (2, 3)]
    assert ranks == [2, 2]
    assert np.linalg.matrix_rank(whole[:, :, 2].reshape(-1, 10), tol=1e-6) == 4


def test_heads_that_attend_otherwise_are_not_merged(model):
    with pytest.raises(ValueError, match=r"[Hh]eads 0 and 1 of layer 1.*attend"):
        twins.merge_heads(model, 1, 0, 1)
    with pytest.raises(ValueError, match=r"merged.* 0 twice"):
        twins.merge_heads(model, 1, 0, 0)


def test_what_a_whole_row_shares_does_not_keep_heads_from_being_merged(model):
    """A bias of the keys adds the same to a whole row of scores."""
    twin = twins.split_head(model, 1, 0)
    weights = {name: np.array(array) for name, array in twin.weights.items()}
    weights["blocks.1.attn.b_K"][3] += 1
    shifted = Transformer(twin.config, weights, twin.mask)
    np.testing.assert_allclose(twins.merge_heads(shifted, 1, 3, 0)(TOKENS), model(TOKENS), atol=1e-9)
    weights["blocks.1.attn.b_Q"][3] += 1  # the negative control: one of the queries does not
    with pytest.raises(ValueError, match=r"[Hh]eads 0 and 3 of layer 1.*attend"):
        twins.merge_heads(Transformer(twin.config, weights, twin.mask), 1, 0, 3)


def test_merged_heads_may_have_to_be_wider(model):
    """Two heads with the same queries and keys and other values write more directions than one is wide."""
    weights = {name: np.array(array) for name, array in model.weights.items()}
    for letter in "QK":
        for kind in "Wb":
            weights[f"blocks.0.attn.{kind}_{letter}"][1] = weights[f"blocks.0.attn.{kind}_{letter}"][0]
    alike = Transformer(model.config, weights, model.mask)
    merged = twins.merge_heads(alike, 0, 0, 1)
    assert merged.config.d_head == 8
    np.testing.assert_allclose(merged(TOKENS), alike(TOKENS), atol=1e-9)


def test_a_doubled_head_writes_its_share_twice(model):
    whole, parts = (activations(one, "result") for one in (model, twins.duplicate_head(model, 1, 0, 0.25)))
    np.testing.assert_allclose(parts[:, :, 0], 0.75 * whole[:, :, 0], atol=1e-12)
    np.testing.assert_allclose(parts[:, :, 3], 0.25 * whole[:, :, 0], atol=1e-12)


def test_idle_heads_attend_and_write_nothing(model):
    twin = twins.insert_idle_heads(model, 2, seed=3)
    pattern = activations(twin, "pattern")[:, 3:]
    assert pattern.std(axis=0).max() > 0.05
    assert not activations(twin, "result")[:, :, 3:].any()
    other = twins.insert_idle_heads(model, 2, seed=4)
    assert np.abs(activations(other, "pattern")[:, 3:] - pattern).max() > 0.05


def test_what_cannot_be_is_refused(random_transformer, model):
    with pytest.raises(ValueError, match=r" 2 to 4 .* 5"):
        twins.split_head(model, 0, 0, parts=5)
    with pytest.raises(ValueError, match=r" 1 directions.*`duplicate_head`"):
        twins.split_head(random_transformer(replace(SIZES, d_head=1)), 0, 0)
    with pytest.raises(ValueError, match=r" 1 idle head.* 0"):
        twins.insert_idle_heads(model, 0)
