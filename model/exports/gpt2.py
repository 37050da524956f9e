"""A transformer without layer norm in the weights of a stock GPT-2, whose layer norm is undone by construction."""

from typing import Any

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.model.constant_norm import CONSTANT, GAIN, N_MORE, ConstantNorm, Readout
from rasplens.model.forward import LAYER_NORM_EPSILON
from rasplens.model.hook_points import param_name
from rasplens.model.transformer import Transformer


def gpt2_weights(
    model: Transformer, readout: Readout, longest: float
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The fields of a `GPT2Config`, and the weights of a `GPT2LMHeadModel` that computes what a transformer does.

    Args:
        model: The transformer.
        readout: Its unembedding, of as many tokens as GPT-2 is to have.
        longest: The largest length of a residual stream, its sum included: `sqrt(x·x + (Σx)²)`.

    Raises:
        RaspLensError: If GPT-2 has no such attention, positions, neurons or normalisation.
    """
    check_expressible(model, "GPT-2")
    config, weights = model.config, model.weights
    width = -(-max(config.d_model + N_MORE, config.n_heads * config.d_head) // config.n_heads) * config.n_heads
    stream = ConstantNorm(config.d_model, width, CONSTANT * max(longest, 1.0))
    d_vocab = readout.weight.shape[1]
    embedding, positions = np.zeros((d_vocab, config.d_model)), np.zeros((config.n_ctx, config.d_model))
    embedding[: config.d_vocab] = model.W_E
    positions += weights.get("pos_embed.W_pos", 0.0)
    found = {
        "transformer.wte.weight": stream.written(embedding),
        "transformer.wpe.weight": stream.written(positions) + stream.constant_direction,
        "lm_head.weight": (stream.read(readout.weight) + np.outer(stream.reads_one, readout.bias)).T,
    }
    for norm in ("ln_f", *(f"h.{layer}.ln_{i}" for layer in range(config.n_layers) for i in (1, 2))):
        found[f"transformer.{norm}.weight"] = np.full(width, stream.divisor)
        found[f"transformer.{norm}.bias"] = np.zeros(width)
    for layer in range(config.n_layers):
        found |= {f"transformer.h.{layer}.{name}": array for name, array in _block(model, layer, stream).items()}
    fields = {
        "vocab_size": d_vocab,
        "n_positions": config.n_ctx,
        "n_embd": width,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": max(config.d_mlp, 1),
        "activation_function": "gelu_new",
        "layer_norm_epsilon": LAYER_NORM_EPSILON,
        "tie_word_embeddings": False,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
    }
    return fields, {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in found.items()}


def _block(model: Transformer, layer: int, stream: ConstantNorm) -> dict[str, np.ndarray]:
    """The weights of one block but its layer norms: linear layers as `x @ W + b`, heads side by side."""
    config, width = model.config, stream.width
    d_head = width // config.n_heads
    attention, bias = np.zeros((width, 3, config.n_heads, d_head)), np.zeros((3, config.n_heads, d_head))
    output = np.zeros((config.n_heads, d_head, width))

    def own(name: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(model.weights.get(param_name(name, layer), np.zeros(shape)))

    for place, letter in enumerate("QKV"):
        scale = np.sqrt(d_head) / config.attn_scale if letter == "Q" else 1.0
        biases = own(f"b_{letter}", (config.n_heads, config.d_head))
        for head, weight in enumerate(model.weights[param_name(f"W_{letter}", layer)]):
            attention[:, place, head, : config.d_head] = scale * stream.read(weight)
            bias[place, head, : config.d_head] = scale * biases[head]
    output[:, : config.d_head] = stream.written(model.weights[param_name("W_O", layer)])
    n_inner = max(config.d_mlp, 1)
    read, written = own("W_in", (config.d_model, n_inner)), own("W_out", (n_inner, config.d_model))
    return {
        "attn.c_attn.weight": attention.reshape(width, 3 * width),
        "attn.c_attn.bias": bias.reshape(3 * width),
        "attn.c_proj.weight": output.reshape(width, width),
        "attn.c_proj.bias": stream.written(own("b_O", (config.d_model,))),
        "mlp.c_fc.weight": GAIN * stream.read(read),
        "mlp.c_fc.bias": GAIN * own("b_in", (n_inner,)),
        "mlp.c_proj.weight": stream.written(written) / GAIN,
        "mlp.c_proj.bias": stream.written(own("b_out", (config.d_model,))),
    }


def check_expressible(model: Transformer, family: str) -> None:
    """Refuses a transformer that a family of models has no weights for, if only its norm is undone.

    Raises:
        RaspLensError: If its attention, positions, neurons or normalisation are others.
    """
    config = model.config
    reasons = {
        f"It sees positions that come later; {family} sees only the past. Compile it with causal=True "
        "(--causal).": (model.mask != np.tri(config.n_ctx, dtype=bool)).any(),
        f"Its positions are {config.positions}; only learned ones, or none, can be expressed.": (
            config.positions not in ("learned", "none")
        ),
        f"{family} has no smeared keys; this model does.": config.smeared_keys,
        "This model has a layer norm of its own.": config.normalization != "none",
        f"Its neurons are {config.activation}; only relu can be expressed.": (
            not config.attn_only and config.activation != "relu"
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            raise RaspLensError(f"The model cannot become a {family}. {reason}")
