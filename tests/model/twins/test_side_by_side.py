"""Two transformers in one residual stream."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.errors import RaspLensError
from rasplens.model import Config
from rasplens.model.twins.side_by_side import side_by_side

SIZES = Config(n_layers=2, n_heads=3, d_model=10, d_head=4, n_ctx=6, d_vocab=7, d_vocab_out=5, d_mlp=9)
OTHER = Config(n_layers=1, n_heads=2, d_model=8, d_head=5, n_ctx=6, d_vocab=7, d_vocab_out=5, attn_scale=3.0)
TOKENS = np.random.default_rng(5).integers(0, 7, (12, 6))


@pytest.mark.parametrize("shares", [(1.0, 1.0), (0.25, 0.75), (0.0, 1.0)])
def test_the_logits_are_a_weighted_sum(random_transformer, shares):
    first, second = random_transformer(SIZES, biases=True), random_transformer(OTHER, biases=True)
    for both in ((first, second), (second, first)):
        wanted = sum(share * one(TOKENS) for share, one in zip(shares, both, strict=True))
        np.testing.assert_allclose(side_by_side(*both, shares)(TOKENS), wanted, atol=1e-9)


def test_one_may_have_no_positions(random_transformer):
    first, second = random_transformer(SIZES), random_transformer(replace(OTHER, positions="none"))
    for both in ((first, second), (second, first)):
        wanted = first(TOKENS) + second(TOKENS)
        np.testing.assert_allclose(side_by_side(*both, (1.0, 1.0))(TOKENS), wanted, atol=1e-9)


def test_neither_reads_what_the_other_writes(random_transformer):
    first, second = random_transformer(SIZES), random_transformer(OTHER)
    stream = side_by_side(first, second, (1.0, 1.0)).run_with_cache(TOKENS)[1]["blocks.1.hook_resid_post"]
    own = first.run_with_cache(TOKENS)[1]["blocks.1.hook_resid_post"]
    np.testing.assert_allclose(stream[..., : SIZES.d_model], own, atol=1e-9)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"d_vocab_out": 4}, "d_vocab_out.*5 and 4"),
        ({"n_ctx": 5}, "n_ctx.*6 and 5"),
        ({"normalization": "LN"}, "layer norm"),
        ({"smeared_keys": True}, "smeared"),
        ({"positions": "sinusoidal_qk"}, "positions"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused(random_transformer, changed, match):
    first, second = random_transformer(SIZES), random_transformer(replace(OTHER, **changed))
    with pytest.raises(RaspLensError, match=match):
        side_by_side(first, second, (1.0, 1.0))


def test_models_with_other_masks_are_refused(random_transformer):
    first, second = random_transformer(SIZES), random_transformer(OTHER)
    open_mask = replace(second, mask=np.ones_like(second.mask))
    with pytest.raises(RaspLensError, match="mask"):
        side_by_side(first, open_mask, (1.0, 1.0))
