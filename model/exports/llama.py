"""A transformer without layer norm in the weights of a stock Llama: RMS norm, rotary positions, gated neurons.

The stream gets one more direction: a constant, so large that the norm hardly depends on the rest
(`rasplens.model.constant_norm` says more). Rotary positions turn the dimensions that heads use by so little that
nothing is seen of it. So they tell no position, and a program that reads positions gets a layer in front. A head
there attends to everything alike and gathers the share of the BOS, which is 1 / (position + 1); neurons tell its
values apart. A neuron's gate is what it reads, multiplied by a thousand: SiLU is then ReLU.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from rasplens.errors import RaspLensError
from rasplens.model.constant_norm import CONSTANT, GAIN, Readout
from rasplens.model.exports.gpt2 import check_expressible
from rasplens.model.hook_points import param_name
from rasplens.model.transformer import Transformer

BASE: Final = 1e15
"""The base of the rotary wavelengths: the slower half of the dimensions turns by less than 1e-7 a position."""

EPSILON: Final = 1e-6
"""Of the RMS norm."""

N_MORE: Final = 3
"""Directions besides the transformer's own: the constant, what marks a BOS, and how much of a text it is."""


@dataclass(frozen=True)
class _Stream:
    """The residual stream of Llama.

    Attributes:
        d_model: The transformer's width; behind it come the constant, the mark of a BOS, and its share.
        width: Llama's, a multiple of its heads.
        constant: What the constant direction holds.
    """

    d_model: int
    width: int
    constant: float

    @property
    def divisor(self) -> float:
        """The number that the norm divides by."""
        return float(np.sqrt(self.constant**2 / self.width + EPSILON))

    @property
    def reads_one(self) -> Float[np.ndarray, " width"]:
        """The vector that reads 1 everywhere."""
        return self.axis(0) / self.constant

    def axis(self, place: int) -> Float[np.ndarray, " width"]:
        """One of the directions behind the transformer's."""
        return np.eye(self.width)[self.d_model + place]

    def wide(self, array: np.ndarray, axis: int) -> np.ndarray:
        """Weights of the transformer in the stream, along the axis of its directions."""
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, self.width - self.d_model)
        return np.pad(array, widths)


def llama_weights(
    model: Transformer, readout: Readout, longest: float, bos: int | None
) -> tuple[dict[str, Any], dict[str, np.ndarray], int]:
    """The fields of a `LlamaConfig`, the weights of a `LlamaForCausalLM`, and how many layers it has in front.

    Args:
        model: The transformer.
        readout: Its unembedding, of as many tokens as Llama is to have.
        longest: The largest length of a residual stream.
        bos: The token that begins every sequence; None if there is none.

    Raises:
        RaspLensError: If Llama has no such attention, neurons or norm, or positions are read without a BOS.
    """
    check_expressible(model, "Llama")
    config, in_front = model.config, int(model.config.positions == "learned")
    if in_front and bos is None:
        raise RaspLensError(
            "The model cannot become a Llama. Positions are counted from a BOS; compile the program with bos=True."
        )
    width = -(-(config.d_model + N_MORE) // config.n_heads) * config.n_heads
    stream = _Stream(config.d_model, width, CONSTANT * max(longest, 1.0))
    d_vocab, d_head = readout.weight.shape[1], 4 * config.d_head
    embedding = np.zeros((d_vocab, stream.width)) + stream.constant * stream.axis(0)
    embedding[: config.d_vocab, : config.d_model] += model.W_E
    if bos is not None:
        embedding[bos] += stream.axis(1)
    n_inner = max(config.d_mlp, 2 * config.n_ctx if in_front else 1)
    blocks = [_counting(model, stream, n_inner)] if in_front else []
    blocks += [_block(model, layer, stream, n_inner) for layer in range(config.n_layers)]
    found = {
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": np.full(stream.width, stream.divisor),
        "lm_head.weight": (stream.wide(readout.weight, 0) + np.outer(stream.reads_one, readout.bias)).T,
    }
    for layer, block in enumerate(blocks):
        found |= {f"model.layers.{layer}.{name}": array for name, array in block.items()}
    fields = {
        "vocab_size": d_vocab,
        "hidden_size": stream.width,
        "intermediate_size": n_inner,
        "num_hidden_layers": len(blocks),
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_heads,
        "head_dim": d_head,
        "max_position_embeddings": config.n_ctx,
        "rms_norm_eps": EPSILON,
        "rope_parameters": {"rope_type": "default", "rope_theta": BASE},
        "tie_word_embeddings": False,
    }
    contiguous = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in found.items()}
    return fields, contiguous, in_front


def _block(model: Transformer, layer: int, stream: _Stream, n_inner: int) -> dict[str, np.ndarray]:
    """A layer of the transformer."""
    config = model.config
    scale = np.sqrt(4 * config.d_head) / config.attn_scale
    projections = {
        f"self_attn.{letter.lower()}_proj.weight": _slow(
            stream.wide(times * model.weights[param_name(f"W_{letter}", layer)], 1).transpose(0, 2, 1)
        )
        for letter, times in (("Q", scale), ("K", 1.0), ("V", 1.0))
    }
    output = _slow(stream.wide(model.weights[param_name("W_O", layer)], 2)).T
    read, written = np.zeros((config.d_model, n_inner)), np.zeros((n_inner, config.d_model))
    if config.d_mlp:
        read[:, : config.d_mlp] = model.weights[param_name("W_in", layer)]
        written[: config.d_mlp] = model.weights[param_name("W_out", layer)]
    neurons = _neurons(stream, stream.wide(read, 0), stream.wide(written, 1))
    return projections | {"self_attn.o_proj.weight": output} | neurons | _norms(stream)


def _counting(model: Transformer, stream: _Stream, n_inner: int) -> dict[str, np.ndarray]:
    """The layer in front, which writes what the transformer's embedding of positions does.

    The share of the BOS at position p is 1 / (p + 1). A neuron for either end of the step between two neighbours
    makes 1 at all positions up to one, and 0 behind.
    """
    config, positions = model.config, model.weights["pos_embed.W_pos"].astype(np.float64)
    n, n_heads, d_head = config.n_ctx, config.n_heads, config.d_head
    value, output = np.zeros((n_heads, d_head, stream.width)), np.zeros((n_heads, d_head, stream.width))
    value[0, 0], output[0, 0] = stream.axis(1), stream.axis(2)
    shares = 1 / np.arange(1, n + 2)
    low, high = shares[1:] * 2 / 3 + shares[:-1] / 3, shares[1:] / 3 + shares[:-1] * 2 / 3
    steps = positions - np.vstack([positions[1:], np.zeros_like(positions[:1])])  # of what holds up to each one
    read, written = np.zeros((stream.width, n_inner)), np.zeros((n_inner, stream.width))
    for first, ends, sign in ((0, low, 1.0), (n, high, -1.0)):
        read[:, first : first + n] = (stream.axis(2)[:, None] - np.outer(stream.reads_one, ends)) / (high - low)
        written[first : first + n] = stream.wide(sign * steps, 1)
    nothing = np.zeros((4 * d_head * n_heads, stream.width))
    return {
        "self_attn.q_proj.weight": nothing,
        "self_attn.k_proj.weight": nothing,
        "self_attn.v_proj.weight": _slow(value),
        "self_attn.o_proj.weight": _slow(output).T,
        **_neurons(stream, read, written),
        **_norms(stream),
    }


def _neurons(stream: _Stream, read: np.ndarray, written: np.ndarray) -> dict[str, np.ndarray]:
    """Neurons that are ReLU of what they read: the gate lets the constant through, or not."""
    return {
        "mlp.gate_proj.weight": GAIN * read.T,
        "mlp.up_proj.weight": np.tile(stream.reads_one, (read.shape[1], 1)),
        "mlp.down_proj.weight": written.T / GAIN,
    }


def _norms(stream: _Stream) -> dict[str, np.ndarray]:
    """The two norms of a layer, which undo what they divide by."""
    return {
        f"{norm}.weight": np.full(stream.width, stream.divisor)
        for norm in ("input_layernorm", "post_attention_layernorm")
    }


def _slow(heads: Float[np.ndarray, "head d_head width"]) -> Float[np.ndarray, "row width"]:
    """Each head's dimensions in the second of four quarters: first halves of rotary pairs that hardly turn."""
    n, d_head, width = heads.shape
    found = np.zeros((n, 4, d_head, width))
    found[:, 1] = heads
    return found.reshape(-1, width)
