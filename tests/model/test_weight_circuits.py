from dataclasses import replace

import numpy as np
import pytest

from rasplens.model import Config, Transformer, causal_mask
from rasplens.model.weight_circuits import (
    copying_score,
    direct_path,
    full_ov_circuit,
    logit_lens,
    ov_matrix,
    qk_matrix,
    score_terms,
)

CONFIG = Config(n_layers=2, n_heads=2, d_model=6, d_head=4, n_ctx=5, d_vocab=7, d_vocab_out=7)
TOKENS = np.array([[1, 2, 3, 4, 0], [6, 6, 5, 0, 1]])


@pytest.mark.parametrize("positions", ["learned", "shortformer", "sinusoidal_qk", "none"])
@pytest.mark.parametrize("biases", [False, True])
def test_the_four_terms_add_up_to_the_score(random_transformer, positions, biases):
    model = random_transformer(Config(**{**CONFIG.to_dict(), "positions": positions}), biases=biases)
    _, cache = model.run_with_cache(TOKENS)
    for head in range(2):
        terms = score_terms(model, head)
        query, key = TOKENS[:, :, None], TOKENS[:, None, :]
        here, there = np.arange(5)[None, :, None], np.arange(5)[None, None, :]
        total = (
            terms.token_token[query, key]
            + terms.token_position[query, there]
            + terms.position_token[here, key]
            + terms.position_position[here, there]
        )
        seen = np.broadcast_to(np.tri(5, dtype=bool), total.shape)
        scores = cache["blocks.0.attn.hook_attn_scores"][:, head]
        np.testing.assert_allclose(total[seen], scores[seen], rtol=0, atol=1e-12)


def test_smeared_keys_have_no_four_terms(random_transformer):
    model = random_transformer(Config(**{**CONFIG.to_dict(), "smeared_keys": True}))
    with pytest.raises(ValueError, match="four-term"):
        score_terms(model, 0)


def test_one_layer_logits_are_the_direct_path_plus_the_ov_circuits(random_transformer):
    """With positions out of the way, logits = direct path + Σ pattern × full OV circuit."""
    one_layer = Config(**{**CONFIG.to_dict(), "n_layers": 1, "positions": "sinusoidal_qk"})
    model = random_transformer(one_layer)
    logits, cache = model.run_with_cache(TOKENS)
    expected = direct_path(model)[TOKENS]
    for head in range(2):
        pattern = cache["blocks.0.attn.hook_pattern"][:, head]
        expected = expected + pattern @ full_ov_circuit(model, 0, head)[TOKENS]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-12)


def test_head_matrices_have_the_shape_of_the_residual_stream(random_transformer):
    model = random_transformer(CONFIG)
    assert ov_matrix(model, 1, 1).shape == (6, 6)
    key = model.weights["blocks.1.attn.W_K"][1]
    np.testing.assert_allclose(qk_matrix(model, 1, 1), model.weights["blocks.1.attn.W_Q"][1] @ key.T / 2)
    with pytest.raises(ValueError, match=r"L2H0.* 2 layers of 2 heads"):
        ov_matrix(model, 2, 0)


def test_copying_scores_of_known_circuits():
    rng = np.random.default_rng(0)
    assert copying_score(np.eye(5)) == 1
    assert copying_score(-np.eye(5)) == -1
    assert copying_score(np.diag([3.0, -1.0])) == pytest.approx(0.5)
    assert abs(copying_score(np.array([[0.0, -1.0], [1.0, 0.0]]))) < 1e-12  # a rotation: eigenvalues ±i
    positive = rng.normal(size=(6, 6))
    assert copying_score(positive @ positive.T) == pytest.approx(1)


def test_the_copying_score_does_not_depend_on_the_basis_of_the_residual_stream(random_transformer):
    model = random_transformer(CONFIG)
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    rotated = {name: array.copy() for name, array in model.weights.items()}
    for name, array in rotated.items():
        if name.endswith(("W_E", "W_pos", "W_O")):
            rotated[name] = array @ rotation
        else:
            rotated[name] = rotation.T @ array
    twin = Transformer(CONFIG, rotated, causal_mask(2, 5))
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), atol=1e-10)
    for head in range(2):
        score = copying_score(full_ov_circuit(model, 0, head))
        assert copying_score(full_ov_circuit(twin, 0, head)) == pytest.approx(score)
        reversed_score = copying_score(-full_ov_circuit(model, 0, head))
        assert reversed_score == pytest.approx(-score)


def test_special_tokens_without_a_logit_do_not_count():
    circuit = np.vstack([np.eye(3), np.full((2, 3), 7.0)])
    assert copying_score(circuit) == 1


def test_scores_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match=r"2 tokens.* 3 logits"):
        copying_score(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"eigenvalue.*zero"):
        copying_score(np.zeros((3, 3)))


def test_a_model_with_layer_norm_has_no_circuits_of_weights_alone(random_transformer):
    model = random_transformer(replace(CONFIG, normalization="LN"))
    for circuit in (
        lambda: full_ov_circuit(model, 0, 0),
        lambda: direct_path(model),
        lambda: score_terms(model, 0),
    ):
        with pytest.raises(ValueError, match=r"normali.*residual stream.*weights"):
            circuit()


@pytest.mark.parametrize("normalization", ["none", "LN", "LNPre"])
def test_the_logit_lens_at_the_end_gives_the_logits(random_transformer, normalization):
    model = random_transformer(replace(CONFIG, normalization=normalization), biases=True)
    logits, cache = model.run_with_cache(np.array([[1, 2, 3]]))
    last = cache[f"blocks.{model.config.n_layers - 1}.hook_resid_post"]
    np.testing.assert_allclose(logit_lens(model, last), logits, rtol=0, atol=1e-10)
