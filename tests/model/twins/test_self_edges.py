from dataclasses import replace

import numpy as np
import pytest

from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Select, indices, tokens
from rasplens.model import Config, Transformer, bidirectional_mask, disguise, twins

SIZES = Config(n_layers=2, n_heads=2, d_model=10, d_head=4, n_ctx=6, d_vocab=7, d_vocab_out=5, d_mlp=3)
TOKENS = np.random.default_rng(5).integers(0, 7, (12, 6))


@pytest.fixture
def by_position(random_transformer):
    """Random transformers whose first head of the first layer attends by position alone."""

    def build(mask=None, dtype=np.float64, **sizes):
        model = random_transformer(replace(SIZES, **sizes), mask=mask, biases=True, dtype=dtype)
        weights = {name: np.array(array) for name, array in model.weights.items()}
        weights["embed.W_E"][:, 5:] = 0
        for letter in "QK":
            weights[f"blocks.0.attn.W_{letter}"][0, :5] = 0
        return Transformer(model.config, weights, model.mask)

    return build


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-5)])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_the_function_stays_and_every_position_attends_to_itself(by_position, share, dtype, tolerance):
    model = by_position(dtype=dtype)
    twin = twins.add_self_edges(model, 0, 0, share)
    for length in (1, 4, 6):
        wanted = model(TOKENS[:, :length])
        assert np.abs(twin(TOKENS[:, :length]) - wanted).max() <= tolerance * np.abs(wanted).max()
    before, after = (one.run_with_cache(TOKENS)[1]["blocks.0.attn.hook_pattern"][:, 0] for one in (model, twin))
    np.testing.assert_allclose(after, (1 - share) * before + share * np.eye(6), atol=1e-4)
    assert np.abs(disguise(twin)(TOKENS) - model(TOKENS)).max() < 1e-3


def test_where_everything_sees_everything_it_holds_on_whole_inputs(by_position):
    model = by_position(mask=bidirectional_mask(2, 6))
    twin = twins.add_self_edges(model, 0, 0)
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), atol=1e-9)


def test_a_compiled_head_that_moves_tokens_takes_them():
    backwards = Aggregate(Select(indices, indices, lambda key, query: key == 4 - query), tokens).named("backwards")
    model = compile_program(backwards, "abc", 5).transformer
    twin = twins.add_self_edges(model, 0, 0, 0.5)
    ids = np.random.default_rng(0).integers(0, 3, (20, model.config.n_ctx))
    ids[:, 0] = 3 if model.config.d_vocab > 3 else ids[:, 0]
    np.testing.assert_allclose(twin(ids), model(ids), atol=1e-5)


def test_heads_that_look_at_tokens_are_refused(by_position):
    with pytest.raises(ValueError, match=r"[Hh]ead 1 of layer 0.*position"):
        twins.add_self_edges(by_position(), 0, 1)
    with pytest.raises(ValueError, match=r"share.* 0 and 1.* 1"):
        twins.add_self_edges(by_position(), 0, 0, 1.0)
    strict = np.tri(6, k=-1, dtype=bool)[None].repeat(2, axis=0)
    with pytest.raises(ValueError, match=r"positions.*themselves.*layer 0"):
        twins.add_self_edges(by_position(mask=strict), 0, 0)
    for sizes, said in (({"smeared_keys": True}, "smeared_keys=True"), ({"normalization": "LN"}, "'LN'")):
        with pytest.raises(ValueError, match=said):
            twins.add_self_edges(by_position(**sizes), 0, 0)
