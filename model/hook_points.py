"""The names of activations and weights, as TransformerLens spells them.

Names are spelled here and in the forward pass that gives them, and nowhere else.
"""

ATTENTION = ("q", "k", "v", "rot_q", "rot_k", "attn_scores", "pattern", "z", "result")
"""Activations inside of a layer's attention."""

NEURONS = ("pre", "post")
"""Activations inside of a layer's MLP."""

ORDER = (
    "resid_pre",
    *("q_input", "k_input", "v_input"),
    *ATTENTION,
    *("attn_out", "resid_mid", "mlp_in"),
    *NEURONS,
    *("mlp_out", "resid_post"),
)
"""The activations of a layer, as they come in the forward pass."""

EMBEDDED = "blocks.0.hook_resid_pre"
"""The hook point of the residual stream before any layer."""


def act_name(activation: str, layer: int) -> str:
    """Return the name of a layer's hook point, as TransformerLens's `get_act_name` does.

    Args:
        activation: One of `ORDER`, such as "resid_post", "z" or "pattern".
        layer: Counted from 0.
    """
    part = "attn." if activation in ATTENTION else "mlp." if activation in NEURONS else ""
    return f"blocks.{layer}.{part}hook_{activation}"


def param_name(param: str, layer: int) -> str:
    """Return the name of a weight or bias of a layer.

    Args:
        param: "W_Q", "b_O", "W_in" and so on, or "smear".
        layer: Counted from 0.
    """
    return f"blocks.{layer}.{'mlp' if param.endswith(('in', 'out')) else 'attn'}.{param}"


def norm_name(norm: str, layer: int) -> str:
    """Return the name of a layer norm of a layer, "ln1" before the attention or "ln2" before the MLP."""
    return f"blocks.{layer}.{norm}"


def layer_of(name: str) -> int:
    """Return the layer of a hook point or weight; what comes before the first one counts as its."""
    first, *rest = name.split(".")
    return int(rest[0]) if first == "blocks" else 0


def is_of_layer(name: str) -> bool:
    """Return whether a hook point or weight belongs to a layer."""
    return name.startswith("blocks.")


def in_layer(name: str, layer: int) -> str:
    """Return the name that a layer's hook point or weight has in another layer."""
    return f"blocks.{layer}.{name.split('.', 2)[2]}"


def activation_of(point: str) -> str:
    """Return what `act_name` was given: "z" for `"blocks.0.attn.hook_z"`."""
    return point.rpartition(".")[2].removeprefix("hook_")


def when(point: str) -> tuple[int, int]:
    """Return the place of a layer's hook point in the forward pass, to sort by."""
    return layer_of(point), ORDER.index(activation_of(point))
