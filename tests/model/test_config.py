import math
from dataclasses import replace

import pytest

from rasplens.model import Config, bias_shapes, hook_names, weight_shapes

SMALL = Config(n_layers=2, n_heads=2, d_model=6, d_head=4, n_ctx=5, d_vocab=7, d_vocab_out=3)


def test_scores_are_divided_by_the_root_of_the_head_width_by_default():
    assert SMALL.attn_scale == math.sqrt(4)
    assert replace(SMALL, attn_scale=1.0).attn_scale == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_layers": -1}, "n_layers.* 0 .*-1"),
        ({"d_mlp": -1}, "d_mlp.* 0 .*-1"),
        ({"n_heads": 0}, "n_heads.* 1.* 0"),
        (
            {"positions": "alibi"},
            "positions.* learned, shortformer, sinusoidal_qk, rotary, none.*'alibi'",
        ),
        ({"activation": "tanh"}, "activation.* relu, gelu, gelu_new, silu.*'tanh'"),
        ({"rotary_dim": 3}, "rotary_dim.*even.*d_head=4.* 3"),
        ({"rotary_dim": 100}, "rotary_dim.*even.*d_head=4.* 100"),
        ({"attn_scale": -1.0}, r"attn_scale.*-1\.0"),
    ],
)
def test_impossible_shapes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


def test_a_config_survives_the_round_trip_through_plain_values():
    config = replace(SMALL, d_mlp=8, positions="sinusoidal_qk", smeared_keys=True)
    assert Config.from_dict(config.to_dict()) == config


def test_from_dict_names_what_is_unknown_or_missing():
    with pytest.raises(ValueError, match=r"[Uu]nknown.*\['rotary_base'\]"):
        Config.from_dict(SMALL.to_dict() | {"rotary_base": 3})
    incomplete = SMALL.to_dict()
    del incomplete["d_model"]
    with pytest.raises(ValueError, match=r"[Ii]ncomplete.*d_model"):
        Config.from_dict(incomplete)


def test_weights_follow_the_architecture():
    assert weight_shapes(SMALL)["blocks.1.attn.W_Q"] == (2, 6, 4)
    assert weight_shapes(SMALL)["blocks.1.attn.W_O"] == (2, 4, 6)
    assert weight_shapes(SMALL)["pos_embed.W_pos"] == (5, 6)
    assert "pos_embed.W_pos" not in weight_shapes(replace(SMALL, positions="sinusoidal_qk"))
    assert weight_shapes(replace(SMALL, smeared_keys=True))["blocks.0.attn.smear"] == (2, 5)
    assert weight_shapes(replace(SMALL, d_mlp=9))["blocks.0.mlp.W_in"] == (6, 9)
    assert "blocks.0.mlp.W_in" not in weight_shapes(SMALL)
    assert bias_shapes(SMALL)["blocks.0.attn.b_Q"] == (2, 4)
    assert bias_shapes(replace(SMALL, d_mlp=9))["blocks.0.mlp.b_in"] == (9,)


def test_attention_only_models_have_no_mlp_hooks():
    assert not any("mlp" in name or "resid_mid" in name for name in hook_names(SMALL))
    assert "blocks.1.mlp.hook_post" in hook_names(replace(SMALL, d_mlp=9))
