"""Export to TransformerLens: a `Transformer` as a native `TransformerBridge`, where that can express it."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from rasplens.errors import RaspLensError
from rasplens.model.config import Config
from rasplens.model.hook_points import param_name
from rasplens.model.transformer import Transformer

if TYPE_CHECKING:
    from transformer_lens.model_bridge import TransformerBridge

PARITY = 1e-4
"""The largest difference of a bridge's logits from the model's, relative to the spread of the model's logits.
Rounding in single precision gives about 1e-6."""

ROUNDING = 1e-6
"""A spread below this share of the logits' magnitude is itself rounding."""


def to_bridge(transformer: Transformer, tokens: Int[np.ndarray, "batch pos"] | None = None) -> "TransformerBridge":
    """The model as a native bridge; the score scale is folded into `W_Q`.

    Args:
        transformer: The model.
        tokens: Inputs on which the logits are compared; by default random ones of full length.

    Raises:
        RaspLensError: If the bridge cannot express the model, or its logits come out different.
    """
    import torch

    _check_expressible(transformer)
    bridge = _empty_bridge(transformer.config, bool(transformer.mask.all()))
    weights = _bridge_weights(transformer)
    parameters = {name.replace("_original_component.", ""): p for name, p in bridge.named_parameters()}
    if set(parameters) != set(weights):
        raise RaspLensError(
            f"This TransformerLens names weights differently: {sorted(set(parameters) ^ set(weights))}."
        )
    if tokens is None:
        rng = np.random.default_rng(0)
        tokens = rng.integers(transformer.config.d_vocab, size=(8, transformer.config.n_ctx))
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.tensor(weights[name]))
        logits = bridge(torch.as_tensor(tokens)).numpy()
    difference = relative_difference(logits, transformer(tokens))
    if not difference <= PARITY:  # nor is NaN
        raise RaspLensError(
            f"The converted model's logits differ by {difference:.1e} of their spread; {PARITY} is allowed."
        )
    return bridge


def relative_difference(logits: np.ndarray, expected: np.ndarray) -> float:
    """Return by how much logits differ from what was expected, relative to how far those spread at a position."""
    spread = np.abs(expected - expected.mean(axis=-1, keepdims=True)).max()
    size = max(float(spread), ROUNDING * float(np.abs(expected).max()), float(np.finfo(np.float32).tiny))
    return float(np.abs(logits - expected).max()) / size


def _check_expressible(transformer: Transformer) -> None:
    config, mask = transformer.config, transformer.mask
    causal = np.tri(config.n_ctx, dtype=bool)
    if not (mask.all() or (mask == causal).all()):
        raise RaspLensError(
            "A native bridge knows causal and bidirectional attention only; this model's mask is neither."
        )
    if config.smeared_keys or config.positions not in ("learned", "none"):
        raise RaspLensError(
            "A native bridge has learned positions in its residual stream, and no smeared keys; this model has "
            f"{'smeared keys' if config.smeared_keys else f'{config.positions} positions'}."
        )
    if transformer.weights.get("unembed.b_U", np.zeros(1)).any():
        raise RaspLensError("A native bridge has no unembedding bias; this model has one.")


def _empty_bridge(config: Config, is_bidirectional: bool) -> "TransformerBridge":
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge import TransformerBridge

    sizes = {name: getattr(config, name) for name in ("n_layers", "n_heads", "d_model", "d_head", "n_ctx")}
    boot_native = TransformerBridge.boot_native  # type: ignore[attr-defined]
    return boot_native(
        TransformerBridgeConfig(
            **sizes,
            d_vocab=config.d_vocab,
            d_vocab_out=config.d_vocab_out,
            d_mlp=config.d_mlp or None,
            act_fn=config.activation,
            attn_only=config.attn_only,
            normalization_type=None if config.normalization == "none" else "LN",
            attention_dir="bidirectional" if is_bidirectional else "causal",
        )
    )


def _bridge_weights(transformer: Transformer) -> dict[str, np.ndarray]:
    """The weights under the bridge's names: linear layers are transposed, heads side by side."""
    config, weights = transformer.config, transformer.weights
    fold = np.sqrt(config.d_head) / config.attn_scale
    found = {
        "tok_embed.weight": transformer.W_E,
        "pos.weight": weights.get("pos_embed.W_pos", np.zeros((config.n_ctx, config.d_model))),
        "head.weight": transformer.W_U.T,
    }
    for norm in config.norms:
        name = {"ln_final": "ln_out"}.get(norm, norm.replace("blocks", "layers"))
        found[f"{name}.weight"] = weights.get(f"{norm}.w", np.ones(config.d_model))
        found[f"{name}.bias"] = weights.get(f"{norm}.b", np.zeros(config.d_model))
    for layer in range(config.n_layers):
        theirs = f"layers.{layer}.attn."
        for letter in "QKV":
            scale = fold if letter == "Q" else 1.0
            bias = weights.get(param_name(f"b_{letter}", layer), np.zeros((config.n_heads, config.d_head)))
            found[f"{theirs}{letter.lower()}.weight"] = (
                scale * np.concatenate(weights[param_name(f"W_{letter}", layer)], axis=1).T
            )
            found[f"{theirs}{letter.lower()}.bias"] = scale * bias.reshape(-1)
        found[f"{theirs}o.weight"] = np.concatenate(weights[param_name("W_O", layer)], axis=0).T
        found[f"{theirs}o.bias"] = weights.get(param_name("b_O", layer), np.zeros(config.d_model))
        for side, width in () if config.attn_only else (("in", config.d_mlp), ("out", config.d_model)):
            name = f"layers.{layer}.mlp.fc_{side}"
            found[f"{name}.weight"] = weights[param_name(f"W_{side}", layer)].T
            found[f"{name}.bias"] = weights.get(param_name(f"b_{side}", layer), np.zeros(width))
    return found
