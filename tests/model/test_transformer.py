from types import SimpleNamespace

import numpy as np
import pytest

from rasplens.model import Config, HasTransformer, Transformer, causal_mask, hook_names, transformer_of
from rasplens.model.transformer import check_tokens

CONFIG = Config(n_layers=1, n_heads=1, d_model=3, d_head=3, n_ctx=4, d_vocab=5, d_vocab_out=2)


@pytest.fixture
def model(random_transformer) -> Transformer:
    return random_transformer(CONFIG)


def changed(model: Transformer, **arrays) -> dict[str, np.ndarray]:
    return {**model.weights, **{name.replace("__", "."): array for name, array in arrays.items()}}


def test_every_invariant_of_the_arrays_fires(model):
    def build(weights, mask=model.mask):
        return Transformer(CONFIG, weights, mask)

    with pytest.raises(ValueError, match=r"embed\.W_E.*\(5, 3\).*\(5, 4\)"):
        build(changed(model, embed__W_E=np.zeros((5, 4))))
    with pytest.raises(ValueError, match=r"[Mm]issing.*unembed\.W_U"):
        build({name: a for name, a in model.weights.items() if name != "unembed.W_U"})
    with pytest.raises(ValueError, match=r"[Uu]nknown.*embed\.W_X"):
        build(changed(model, embed__W_X=np.zeros(1)))
    with pytest.raises(ValueError, match=r"unembed\.W_U.*floating-point.*int64"):
        build(changed(model, unembed__W_U=np.zeros((3, 2), dtype=int)))
    with pytest.raises(ValueError, match=r"dtype.*embed\.W_E.*float64.*unembed\.W_U.*float32"):
        build(changed(model, unembed__W_U=np.zeros((3, 2), dtype=np.float32)))
    with pytest.raises(ValueError, match=r"unembed\.W_U.*NaN.*infinite"):
        build(changed(model, unembed__W_U=np.full((3, 2), np.nan)))
    with pytest.raises(ValueError, match=r"mask.*\(1, 4, 4\).*layer, query, key.*\(4, 4\)"):
        build(model.weights, np.tri(4, dtype=bool))
    with pytest.raises(ValueError, match=r"mask.*boolean.*int64"):
        build(model.weights, causal_mask(1, 4).astype(np.int64))


def test_a_frozen_ov_that_is_not_the_identity_is_refused(model):
    config = Config(**{**CONFIG.to_dict(), "identity_v": True})
    with pytest.raises(ValueError, match=r"blocks\.0\.attn\.W_V.*identity"):
        Transformer(config, model.weights, model.mask)


def test_tokens_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"tokens.*\[batch, pos\].*\(3,\)"):
        check_tokens(CONFIG, np.zeros(3, int))
    with pytest.raises(ValueError, match=r"5 positions.*n_ctx=4"):
        check_tokens(CONFIG, np.zeros((1, 5), int))
    with pytest.raises(ValueError, match=r" 0 to 5.* 0 to 4"):
        check_tokens(CONFIG, np.array([[0, 5]]))
    with pytest.raises(ValueError, match=r" -1 to 0.* 0 to 4"):
        check_tokens(CONFIG, np.array([[0, -1]]))


def test_both_ways_to_run_check_their_tokens(model):
    with pytest.raises(ValueError, match="n_ctx=4"):
        model(np.zeros((1, 5), int))
    with pytest.raises(ValueError, match="n_ctx=4"):
        model.run_with_cache(np.zeros((1, 5), int))


def test_weights_and_mask_cannot_be_written_to(model):
    with pytest.raises(ValueError, match="read-only"):
        model.W_E[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        model.mask[0, 0, 0] = False
    with pytest.raises(TypeError):
        model.weights["embed.W_E"] = model.W_U


def test_the_arrays_are_copies_of_what_was_given(model):
    weights = {name: array.copy() for name, array in model.weights.items()}
    built = Transformer(CONFIG, weights, model.mask)
    weights["embed.W_E"][:] = 0
    np.testing.assert_array_equal(built.W_E, model.W_E)


def test_the_cache_holds_every_hook_point(model):
    logits, cache = model.run_with_cache(np.array([[0, 1, 2]]))
    assert list(cache) == hook_names(CONFIG)
    np.testing.assert_array_equal(logits, model(np.array([[0, 1, 2]])))
    np.testing.assert_array_equal(logits, cache["blocks.0.hook_resid_post"] @ model.W_U)


def test_the_number_of_parameters_is_counted_by_hand(model):
    assert model.n_params == 5 * 3 + 4 * 3 + 4 * 9 + 3 * 2


def test_the_summary_is_one_line(model):
    expected = "Transformer(1 layers × 1 heads, d_model=3, attention-only, 5 tokens → 2 logits, 69 parameters)"
    assert repr(model) == expected


def test_a_transformer_stands_for_itself_and_a_model_for_its_transformer(model):
    assert model.transformer is model
    assert transformer_of(SimpleNamespace(transformer=model)) is model
    assert transformer_of(SimpleNamespace(transformer="a module of that name")) is None
    assert isinstance(model, HasTransformer)
    assert not isinstance(3, HasTransformer)


def test_logits_that_are_not_finite_are_refused(model):
    huge = {name: np.full_like(array, 3e38, dtype=np.float32) for name, array in model.weights.items()}
    with pytest.raises(ValueError, match=r"logit.*finite.*float32"):
        Transformer(CONFIG, huge, model.mask)(np.array([[0, 1]]))
    with pytest.raises(ValueError, match=r"logit.*finite"):
        Transformer(CONFIG, huge, model.mask).run_with_cache(np.array([[0, 1]]))
