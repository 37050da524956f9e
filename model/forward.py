"""The mathematics of the transformer, written once.

`ForwardPass` is written in the Python array API standard, so the same page is the numpy reference, the
torch model with hook points and the JAX function that training differentiates. Source: Elhage et al.
2021, "A Mathematical Framework for Transformer Circuits"; names as in TransformerLens.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import device, is_numpy_namespace, is_torch_namespace
from jaxtyping import Float

from rasplens.model.config import Config

Array = Any
"""An array of the chosen namespace: numpy's, torch's or JAX's."""

Hook = Callable[[str, Array], Array]
"""Sees each activation under its hook name and returns what the forward pass goes on with."""


LAYER_NORM_EPSILON = 1e-5
"""Added to the variance, as in TransformerLens and GPT-2."""

ROTARY_BASE = 10_000
"""The base of the wavelengths of rotary positions, as in TransformerLens and GPT-NeoX."""


def no_hook(name: str, value: Array) -> Array:
    """The activation unchanged."""
    return value


def forward(
    weights: Mapping[str, Array],
    mask: Array,
    config: Config,
    tokens: Array,
    hook: Hook = no_hook,
    xp: ModuleType = np,
) -> Array:
    """Logits of a batch of token sequences, `[batch, pos, d_vocab_out]`; see `ForwardPass`."""
    return ForwardPass(weights, mask, config, hook, xp).logits(tokens)


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """A model's forward pass, and what is computed in it besides the logits.

    Attributes:
        weights: Named arrays of the namespace `xp`; see `weight_shapes` and `bias_shapes`.
        mask: Boolean `[layer, n_ctx, n_ctx]`, see `rasplens.model.mask`; or one for each input,
            `[layer, batch, 1, n_ctx, n_ctx]`.
        config: The architecture.
        hook: Called on every activation that `hook_names` lists.
        xp: The array namespace.
        per_head: Whether each head's own output is computed, `hook_result`; without, only their sum, which
            takes a fraction of the time and memory of wide models.
        silent: Layers whose heads write nothing. Their attention is left out, with its hook points.
        used: By the name of a weight, the directions of the stream that it reads or writes, where these are few:
            the others are left out of the product. For a weight that writes, a slice.
        split: Whether each head's queries, keys and values read a copy of their own of the residual stream, which
            hooks see as `hook_q_input`, `hook_k_input` and `hook_v_input`, `[batch, pos, head, d_model]`, and the
            MLP as `hook_mlp_in`: TransformerLens's `use_split_qkv_input` and `use_hook_mlp_in`.
    """

    weights: Mapping[str, Array]
    mask: Array
    config: Config
    hook: Hook = no_hook
    xp: ModuleType = np
    per_head: bool = True
    silent: Collection[int] = ()
    used: Mapping[str, Any] = field(default_factory=dict)
    split: bool = False

    def logits(self, tokens: Array) -> Array:
        """Logits `[batch, pos, d_vocab_out]` of tokens, integers `[batch, pos]` with pos ≤ n_ctx."""
        residual = self.hook("hook_embed", self.weights["embed.W_E"][tokens])
        position = None
        if self.config.positions not in ("none", "rotary"):
            position = self.hook("hook_pos_embed", _position_embedding(self, residual))
        if self.config.positions == "learned":
            residual = residual + position
        return _layers(self, 0, residual, position)

    def logits_from(self, layer: int, residual: Array, gathered: Array | None = None) -> Array:
        """Logits of a pass that starts before a layer, or behind its attention.

        Behind the last layer's nothing passes between positions: there, any choice of positions may be given.

        Args:
            layer: The layer.
            residual: Its `hook_resid_pre`: `[batch, pos, d_model]`.
            gathered: Its `hook_z`, to start behind the attention: `[batch, pos, head, d_head]`.

        Returns:
            `[batch, pos, d_vocab_out]`.
        """
        if gathered is not None:
            residual, layer = _behind_heads(self, layer, residual, gathered), layer + 1
        is_kept = self.config.positions in ("shortformer", "sinusoidal_qk")  # beside the stream, for every layer
        position = _position_embedding(self, residual) if is_kept else None
        return _layers(self, layer, residual, position)

    def read(self, residual: Array, name: str) -> tuple[Array, Array]:
        """The stream and a weight that reads it, `[..., d_model, width]`, along the directions that it reads."""
        used = self.used.get(name, slice(None))
        return residual[..., used], self.weights[name][..., used, :]

    def written(self, value: Array, name: str, weight: Array) -> Array:
        """Multiply a value by a weight that writes to the stream, `[width, d_model]`."""
        if (used := self.used.get(name)) is None:
            return value @ weight
        part, xp = value @ weight[:, used], self.xp
        sizes = used.start, weight.shape[1] - used.stop
        before, after = (xp.zeros((*part.shape[:-1], size), dtype=part.dtype) for size in sizes)
        return xp.concat([before, part, after], axis=-1)

    def plus_bias(self, value: Array, name: str) -> Array:
        """Add a bias to a value, if the model has it."""
        return value + self.weights[name] if name in self.weights else value

    def normalized(self, norm: str, residual: Array) -> Array:
        """Apply one of the model's layer norms; see the function `normalized`."""
        return normalized(self.weights, self.config, norm, residual, self.hook, self.xp)


def normalized(
    weights: Mapping[str, Array],
    config: Config,
    norm: str,
    residual: Array,
    hook: Hook = no_hook,
    xp: ModuleType = np,
) -> Array:
    """Apply a layer norm, such as `"ln_final"`, to the residual stream; no change, if the config has none."""
    if config.normalization == "none":
        return residual
    centred = residual - xp.mean(residual, axis=-1, keepdims=True)
    scale = xp.sqrt(xp.mean(centred**2, axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
    scaled = centred / hook(f"{norm}.hook_scale", scale)
    if config.normalization == "LN":
        scaled = scaled * weights[f"{norm}.w"] + weights[f"{norm}.b"]
    return hook(f"{norm}.hook_normalized", scaled)


def _layers(model: ForwardPass, first: int, residual: Array, position: Array | None) -> Array:
    """Logits from the residual stream before a layer."""
    for layer in range(first, model.config.n_layers):
        residual = model.hook(f"blocks.{layer}.hook_resid_pre", residual)
        read = _attention_inputs(model, layer, residual)
        gathered = None if layer in model.silent else _gathered(model, layer, read, position)
        residual = _behind_heads(model, layer, residual, gathered)
    seen, weight = model.read(model.normalized("ln_final", residual), "unembed.W_U")
    return model.plus_bias(seen @ weight, "unembed.b_U")


def _behind_heads(model: ForwardPass, layer: int, residual: Array, gathered: Array | None) -> Array:
    """The residual stream after a layer, from what its heads gathered; None for heads that write nothing."""
    block = f"blocks.{layer}."
    if gathered is None:
        output = model.plus_bias(model.xp.zeros_like(residual), f"{block}attn.b_O")
    else:
        output = _attention_output(model, layer, gathered)
    residual = residual + model.hook(f"{block}hook_attn_out", output)
    if not model.config.attn_only:
        residual = model.hook(f"{block}hook_resid_mid", residual)
        own = model.hook(f"{block}hook_mlp_in", residual) if model.split else residual
        read = model.normalized(f"{block}ln2", own)
        residual = residual + model.hook(f"{block}hook_mlp_out", _mlp(model, layer, read))
    return model.hook(f"{block}hook_resid_post", residual)


def _attention_inputs(model: ForwardPass, layer: int, residual: Array) -> tuple[Array, Array, Array]:
    """Return the inputs of queries, keys and values: all one, or a copy a head, `[batch, pos, head, d_model]`."""
    norm = f"blocks.{layer}.ln1"
    if not model.split:
        read = model.normalized(norm, residual)
        return read, read, read
    copies = model.xp.repeat(residual[:, :, None], model.config.n_heads, axis=2)
    query, key, value = (
        model.normalized(norm, model.hook(f"blocks.{layer}.hook_{letter}_input", copies)) for letter in "qkv"
    )
    return query, key, value


def _gathered(model: ForwardPass, layer: int, read: tuple[Array, Array, Array], position: Array | None) -> Array:
    """Return `z`, what each head gathers: the attention-weighted sum of values, `[batch, pos, head, d_head]`."""
    name, hook, xp = f"blocks.{layer}.attn.", model.hook, model.xp
    query, key, value = read
    if model.config.positions == "shortformer" and position is not None:
        beside = position[:, :, None] if model.split else position
        query, key = query + beside, key + beside
    query, key, value = (
        _project(model, name, letter, each) for letter, each in zip("QKV", (query, key, value), strict=True)
    )
    if model.config.positions == "sinusoidal_qk":
        query, key = query + position, key + position
    if model.config.smeared_keys:
        key = _smear(key, model.weights[f"{name}smear"], xp)
    query, key, value = hook(f"{name}hook_q", query), hook(f"{name}hook_k", key), hook(f"{name}hook_v", value)
    if model.config.positions == "rotary":
        angles = rotary_angles(query.shape[1], model.config.rotary_dim)[:, None]
        query = hook(f"{name}hook_rot_q", rotated(query, angles, xp))
        key = hook(f"{name}hook_rot_k", rotated(key, angles, xp))

    n_pos = query.shape[1]
    scores = xp.permute_dims(query, (0, 2, 1, 3)) @ xp.permute_dims(key, (0, 2, 3, 1)) / model.config.attn_scale
    scores = xp.where(model.mask[layer][..., :n_pos, :n_pos], scores, -xp.inf)
    pattern = masked_softmax(hook(f"{name}hook_attn_scores", scores), xp)
    mixed = hook(f"{name}hook_pattern", pattern) @ xp.permute_dims(value, (0, 2, 1, 3))
    return hook(f"{name}hook_z", xp.permute_dims(mixed, (0, 2, 1, 3)))


def _attention_output(model: ForwardPass, layer: int, gathered: Array) -> Array:
    """Return the output of the heads together, with the bias: `[batch, pos, d_model]`."""
    name, xp = f"blocks.{layer}.attn.", model.xp
    output = model.weights[f"{name}W_O"]
    if model.per_head:
        per_head = xp.permute_dims(gathered, (2, 0, 1, 3)) @ output[:, None, :, :]
        per_head = model.hook(f"{name}hook_result", xp.permute_dims(per_head, (1, 2, 0, 3)))
        return model.plus_bias(xp.sum(per_head, axis=2), f"{name}b_O")
    side_by_side, weight = (
        xp.reshape(gathered, (*gathered.shape[:2], gathered.shape[2] * gathered.shape[3])),
        xp.reshape(output, (-1, output.shape[2])),
    )
    return model.plus_bias(model.written(side_by_side, f"{name}W_O", weight), f"{name}b_O")


def _project(model: ForwardPass, name: str, letter: str, residual: Array) -> Array:
    """Queries, keys or values: `[batch, pos, head, d_head]`."""
    if model.split:
        xp, weight = model.xp, model.weights[f"{name}W_{letter}"]
        per_head = xp.permute_dims(residual, (2, 0, 1, 3)) @ weight[:, None, :, :]
        return model.plus_bias(xp.permute_dims(per_head, (1, 2, 0, 3)), f"{name}b_{letter}")
    projected = model.xp.tensordot(*model.read(residual, f"{name}W_{letter}"), axes=((2,), (1,)))
    return model.plus_bias(projected, f"{name}b_{letter}")


def _mlp(model: ForwardPass, layer: int, residual: Array) -> Array:
    """Return the output of a layer's MLP: `[batch, pos, d_model]`."""
    name, hook, xp = f"blocks.{layer}.mlp.", model.hook, model.xp
    seen, weight = model.read(residual, f"{name}W_in")
    pre = hook(f"{name}hook_pre", model.plus_bias(seen @ weight, f"{name}b_in"))
    post = hook(f"{name}hook_post", activated(pre, model.config.activation, xp))
    return model.plus_bias(model.written(post, f"{name}W_out", model.weights[f"{name}W_out"]), f"{name}b_out")


def activated(pre: Array, activation: str, xp: ModuleType = np) -> Array:
    """Apply the activation function of the neurons.

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", with its approximation by tanh ("gelu_new").
    """
    if is_torch_namespace(xp):
        return _activated_in_torch(pre, activation)
    if activation == "relu":
        return xp.where(pre > 0, pre, xp.zeros_like(pre))
    if activation == "gelu":
        return pre * (1 + _erf(pre / math.sqrt(2), xp)) / 2
    if activation == "gelu_new":
        return pre * (1 + xp.tanh(math.sqrt(2 / math.pi) * (pre + 0.044715 * pre**3))) / 2
    return pre / (1 + xp.exp(-pre))


def _activated_in_torch(pre: Array, activation: str) -> Array:
    """Apply the activation function by one operation of torch, which for GPT-2's size saves a fifth of a pass."""
    from torch.nn import functional

    if activation in ("gelu", "gelu_new"):
        return functional.gelu(pre, approximate="none" if activation == "gelu" else "tanh")
    return functional.relu(pre) if activation == "relu" else functional.silu(pre)


def _erf(value: Array, xp: ModuleType) -> Array:
    """The error function, which the array API standard lacks."""
    if is_numpy_namespace(xp):
        import scipy.special

        return scipy.special.erf(value)
    import jax.scipy.special

    return jax.scipy.special.erf(value)


def rotary_angles(n_pos: int, width: int) -> Float[np.ndarray, "pos pair"]:
    """By how much rotary positions turn each pair of dimensions (Su et al. 2021, "RoFormer", equation 15)."""
    return np.arange(n_pos)[:, None] / ROTARY_BASE ** (np.arange(width // 2) * 2 / width)


def rotated(value: Array, angles: np.ndarray, xp: ModuleType = np) -> Array:
    """Queries or keys whose first dimensions are turned, pair by pair: one of the first half, one of the second.

    Args:
        value: `[..., d_head]`, whose other axes `angles` goes with.
        angles: `[..., pair]`, in radians.
        xp: The array namespace.
    """
    pairs = angles.shape[-1]
    first, second, rest = value[..., :pairs], value[..., pairs : 2 * pairs], value[..., 2 * pairs :]
    cos, sin = (xp.asarray(f(angles), dtype=value.dtype, device=device(value)) for f in (np.cos, np.sin))
    return xp.concat([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)


def masked_softmax(scores: Array, xp: ModuleType = np) -> Array:
    """Softmax over the last axis; a row that is -inf throughout gives zeros (a silent row)."""
    top = xp.max(scores, axis=-1, keepdims=True)
    exponent = xp.exp(scores - xp.where(xp.isfinite(top), top, xp.zeros_like(top)))
    total = xp.sum(exponent, axis=-1, keepdims=True)
    return exponent / xp.where(total > 0, total, xp.ones_like(total))


def _smear(key: Array, smear: Array, xp: ModuleType) -> Array:
    """Each key mixed with the one before it by sigmoid(smear) `[head, pos]`; the first has none before."""
    share = 1 / (1 + xp.exp(-smear[:, 1 : key.shape[1]]))
    share = xp.permute_dims(share, (1, 0))[None, :, :, None]
    return xp.concat([key[:, :1], (1 - share) * key[:, 1:] + share * key[:, :-1]], axis=1)


def _position_embedding(model: ForwardPass, embedded: Array) -> Array:
    """`[batch, pos, d_model]`, or for sinusoids on queries and keys `[batch, pos, head, d_head]`."""
    config, xp = model.config, model.xp
    batch, n_pos = embedded.shape[:2]
    if config.positions in ("learned", "shortformer"):
        position = model.weights["pos_embed.W_pos"][:n_pos]
    else:
        waves = sinusoids(n_pos, config.n_heads * config.d_head)
        waves = waves.reshape(n_pos, config.n_heads, config.d_head)
        position = xp.asarray(waves, dtype=embedded.dtype, device=device(embedded))
    return xp.repeat(position[None], batch, axis=0)


def sinusoids(n_pos: int, width: int) -> Float[np.ndarray, "pos width"]:
    """Sines in the even and cosines in the odd columns (Vaswani et al. 2017, section 3.5)."""
    columns = np.arange(width)
    angles = np.arange(n_pos)[:, None] / 10000 ** (columns // 2 * 2 / width)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))
