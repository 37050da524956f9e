"""Names of activations and weights are TransformerLens's, and complete."""

import pytest
from transformer_lens.utilities import get_act_name

from rasplens.model import Config, bias_shapes, hook_names, weight_shapes
from rasplens.model.config import residual_points
from rasplens.model.hook_points import (
    ORDER,
    act_name,
    activation_of,
    in_layer,
    is_of_layer,
    layer_of,
    param_name,
    when,
)

CONFIG = Config(2, 2, 8, 4, 5, 6, 6, d_mlp=3, positions="rotary", normalization="LN", smeared_keys=True)


@pytest.mark.parametrize("activation", [name for name in ORDER if name != "mlp_in"])
def test_activations_are_named_as_transformer_lens_names_them(activation):
    assert act_name(activation, 3) == get_act_name(activation, 3)
    assert (activation_of(act_name(activation, 3)), layer_of(act_name(activation, 3))) == (activation, 3)


def test_a_model_has_every_activation_and_weight_that_can_be_named():
    hooks = [name for name in hook_names(CONFIG) if is_of_layer(name) and ".ln" not in name]
    optional = {"q_input", "k_input", "v_input", "mlp_in"}  # only where a pass is split
    assert hooks == [
        act_name(activation, layer) for layer in (0, 1) for activation in ORDER if activation not in optional
    ]
    weights = [
        name for name in (*weight_shapes(CONFIG), *bias_shapes(CONFIG)) if is_of_layer(name) and ".ln" not in name
    ]
    assert weights
    assert all(name == param_name(name.rpartition(".")[2], layer_of(name)) for name in weights)


def test_a_name_in_another_layer():
    assert in_layer("blocks.3.ln1.w", 5) == "blocks.5.ln1.w"
    assert [is_of_layer(name) for name in ("blocks.0.mlp.W_in", "unembed.W_U", "hook_embed")] == [
        True,
        False,
        False,
    ]
    assert layer_of("hook_embed") == 0


def test_hook_points_sort_as_they_come_in_the_forward_pass():
    own = [name for name in hook_names(CONFIG) if is_of_layer(name) and ".ln" not in name]
    in_order = sorted(own, key=lambda name: name[::-1])
    assert in_order != own
    assert sorted(in_order, key=when) == own
    assert (
        sorted(["blocks.10.hook_resid_mid", "blocks.2.hook_resid_post"], key=when)[0] == "blocks.2.hook_resid_post"
    )


def test_each_state_of_the_stream_is_named_once():
    assert residual_points(CONFIG) == [
        "blocks.0.hook_resid_pre",
        *(f"blocks.{layer}.hook_resid_{state}" for layer in (0, 1) for state in ("mid", "post")),
    ]
