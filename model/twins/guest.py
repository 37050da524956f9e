"""A model without layer norm planted among the parts of one with it, which goes on as before on its own tokens.

Host and guest have heads, neurons and directions of their own. The guest's tokens write a constant into the
residual stream, so large that layer norm leaves the guest's directions as they are
(`rasplens.model.constant_norm`). On other tokens the guest is silent: its directions are zero there, but for
positions and a mark that turns its neurons off. These are written so faintly that the host's norm hardly changes.
Neurons of an early layer pass positions on where the token is the guest's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from rasplens.errors import RaspLensError
from rasplens.model.config import Config, bias_shapes, weight_shapes
from rasplens.model.constant_norm import CONSTANT, GAIN, N_MORE, ConstantNorm, Readout
from rasplens.model.hook_points import param_name
from rasplens.model.random_streams import rng
from rasplens.model.transformer import Transformer
from rasplens.model.twins.side_by_side import add_part

LARGER: Final = 1000.0
"""How many times as long as the host's stream the constant is: the norm then varies by a millionth."""

FAINT: Final = 1e-2
"""The length of a position and of the mark of foreign tokens, in lengths of the host's shortest stream."""

SILENCED: Final = 4.0
"""How strongly that mark keeps neurons from acting, in strengths of a position."""

LOUD: Final = 4.0
"""How far the guest's answers are above the host's logits, in sizes of the largest of these."""

N_SAMPLED, LONGEST_SAMPLED = 16, 64
"""Sequences on which the host's stream is measured, and their length at most."""


@dataclass(frozen=True, eq=False)
class Guest:
    """A model to be planted in another.

    Attributes:
        transformer: Its weights: no layer norm, no biases, ReLU, learned positions or none.
        tokens: The host's token for each of its own.
        answers: The host's token for each of its answers.
        readout: What gives each answer's logit.
        gap: How far the logit of the right answer is above the next, at least.
        longest: The largest length of its residual stream, its sum included: `sqrt(x·x + (Σx)²)`.
    """

    transformer: Transformer
    tokens: Sequence[int]
    answers: Sequence[int]
    readout: Readout
    gap: float
    longest: float

    @property
    def positions(self) -> int:
        """How many positions it reads, which takes a layer before its first one; 0 if it reads none."""
        config = self.transformer.config
        return config.n_ctx if config.positions == "learned" else 0


def planted(
    host: Transformer, guest: Guest, layers: Sequence[int], order: Sequence[Int[np.ndarray, " head"]]
) -> Transformer:
    """The host with a guest among its parts.

    The guest's neurons, and those that pass positions on, stand behind the host's.

    Args:
        host: A model with layer norm, and learned positions or none.
        guest: What is planted.
        layers: The host's layer for each of the guest's, ascending; not the first, if it reads positions.
        order: Of each layer's heads: the number of each among the host's and then the guest's.

    Raises:
        RaspLensError: If either has other parts than these, sees more than the past, or the guest does not fit.
    """
    _check(host, guest, layers)
    stream, unit, faint = _stream(host, guest)
    config = _config(host.config, guest, stream.width)
    found = {name: np.zeros(shape) for name, shape in (weight_shapes(config) | bias_shapes(config)).items()}
    behind = {"n_heads": host.config.n_heads, "d_mlp": host.config.d_mlp}
    for name, array in _centred(host).items():
        add_part(found, name, array)
    for name, array in _guest_weights(host, guest, layers, stream, unit, faint):
        add_part(found, name, array, behind)
    shorter = np.sqrt(host.config.d_model / stream.width)  # the mean square is now one of more directions
    for norm in config.norms:
        found[f"{norm}.w"] *= shorter
        found[f"{norm}.w"][host.config.d_model :] = stream.divisor
    for layer, heads in enumerate(order):
        for letter in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V"):
            found[param_name(letter, layer)] = found[param_name(letter, layer)][heads]
    return Transformer(config, {name: array.astype(host.dtype) for name, array in found.items()}, host.mask)


def _config(host: Config, guest: Guest, width: int) -> Config:
    """The config of both together."""
    own = guest.transformer.config
    return replace(
        host,
        n_heads=host.n_heads + own.n_heads,
        d_model=width,
        d_head=max(host.d_head, own.d_head),
        d_mlp=host.d_mlp + max(own.d_mlp, guest.positions),
        positions="learned" if guest.positions else host.positions,
        identity_v=False,
        identity_o=False,
    )


def _stream(host: Transformer, guest: Guest) -> tuple[ConstantNorm, float, float]:
    """The guest's directions behind the host's; what one of its units is there; how long a position is."""
    lengths = _lengths(host)
    if not lengths.min():
        raise RaspLensError(
            "The program cannot be planted. The host's residual stream is zero somewhere: some of its tokens have "
            "no embedding."
        )
    n = guest.transformer.config.d_model + guest.positions + 1
    constant = LARGER * float(lengths.max())
    stream = ConstantNorm(n, host.config.d_model + n + N_MORE, constant, host.config.d_model)
    return stream, constant / (CONSTANT * max(guest.longest, 1.0)), FAINT * float(lengths.min())


def _lengths(host: Transformer) -> Float[np.ndarray, " point"]:
    """The lengths of the host's residual stream, its mean taken off, on random tokens."""
    n = min(host.config.n_ctx, LONGEST_SAMPLED)
    tokens = rng(0, "host's text").integers(0, host.config.d_vocab, (N_SAMPLED, n))
    _, cache = host.run_with_cache(tokens)
    streams = [value for name, value in cache.items() if "hook_resid" in name]
    return np.concatenate([np.linalg.norm(_without_mean(value), axis=-1).ravel() for value in streams])


def _without_mean(array: np.ndarray) -> np.ndarray:
    """Vectors of the stream less their mean, which layer norm takes off anyway."""
    return array - array.mean(axis=-1, keepdims=True)


def _centred(host: Transformer) -> Mapping[str, np.ndarray]:
    """The host's weights, none of which writes what layer norm takes off."""
    writes = "W_E", "W_pos", "W_O", "b_O", "W_out", "b_out"
    return {
        name: _without_mean(array.astype(np.float64)) if name.endswith(writes) else array.astype(np.float64)
        for name, array in host.weights.items()
    }


def _guest_weights(
    host: Transformer, guest: Guest, layers: Sequence[int], stream: ConstantNorm, unit: float, faint: float
) -> Iterator[tuple[str, np.ndarray]]:
    """The guest's weights by the names that they have in the host, in the wider stream."""
    model, own = guest.transformer, guest.transformer.config

    def written(array: np.ndarray) -> np.ndarray:
        return stream.written(_padded(unit * array, stream.d_model, axis=-1))

    def read(array: np.ndarray) -> np.ndarray:
        return stream.read(_padded(array / unit, stream.d_model, axis=0))

    *positions, foreign = np.eye(stream.d_model)[own.d_model :]
    silence = SILENCED / faint * stream.read(foreign[:, None])  # what neurons read less on foreign tokens
    embedding = np.tile(faint * stream.written(foreign), (host.config.d_vocab, 1))
    if positions:
        yield "pos_embed.W_pos", faint * stream.written(np.stack(positions))
        is_there = stream.read(np.stack(positions, axis=1)) / faint - 0.5 * stream.reads_one[:, None]
        yield param_name("W_in", layers[0] - 1), GAIN * (is_there - silence)
        yield param_name("W_out", layers[0] - 1), written(2 / GAIN * model.weights["pos_embed.W_pos"])
    embedding[list(guest.tokens)] = written(model.W_E) + stream.constant_direction
    yield "embed.W_E", embedding
    scale = host.config.attn_scale / own.attn_scale
    for number, layer in enumerate(layers):
        for letter, times in (("Q", scale), ("K", 1.0), ("V", 1.0)):
            heads = model.weights[param_name(f"W_{letter}", number)]
            yield param_name(f"W_{letter}", layer), np.stack([times * read(head) for head in heads])
        yield param_name("W_O", layer), written(model.weights[param_name("W_O", number)])
        if own.d_mlp:
            yield param_name("W_in", layer), GAIN * (read(model.weights[param_name("W_in", number)]) - silence)
            yield param_name("W_out", layer), written(model.weights[param_name("W_out", number)] / GAIN)
    logits = np.zeros((stream.width, host.config.d_vocab_out))
    above = read(guest.readout.weight) + np.outer(stream.reads_one, guest.readout.bias + 1)
    logits[:, list(guest.answers)] = LOUD * max(1.0, _loudest(host, stream.width)) / guest.gap * above
    yield "unembed.W_U", logits


def _padded(array: np.ndarray, n: int, axis: int) -> np.ndarray:
    """An array with zeros behind it along an axis, up to a size."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, n - array.shape[axis])
    return np.pad(array, widths)


def _loudest(host: Transformer, width: int) -> float:
    """More than the host's logits are where the constant is, in size."""
    unembedding, zero = host.W_U.astype(np.float64), np.zeros(host.config.d_vocab_out)
    shift = host.weights["ln_final.b"] @ unembedding + host.weights.get("unembed.b_U", zero)
    longest = np.linalg.norm(host.weights["ln_final.w"][:, None] * unembedding, axis=0).max()
    return float(np.abs(shift).max() + np.sqrt(width) / LARGER * longest)


def _check(host: Transformer, guest: Guest, layers: Sequence[int]) -> None:
    """Refuses what cannot be planted.

    Raises:
        RaspLensError: If a part is missing or of another kind, or the guest does not fit.
    """
    model, own = guest.transformer, host.config
    config, first = model.config, int(guest.positions > 0)
    biases = [name for name in bias_shapes(config) if name in model.weights and model.weights[name].any()]
    past = np.tri(own.n_ctx, dtype=bool)
    is_fit = len(layers) == config.n_layers and list(layers) == sorted(set(layers))
    reasons = {
        f"The host needs layer norm; it has normalization {own.normalization!r}.": own.normalization != "LN",
        f"The host needs learned positions or none; it has {own.positions} ones.": (
            own.positions not in ("learned", "none")
        ),
        "The host may not have smeared keys.": own.smeared_keys,
        "The host has no neurons.": own.attn_only,
        f"The host needs float32 or float64 weights; it has {host.dtype} ones.": host.dtype.itemsize < 4,
        "Both may see only the past. Compile the program with causal=True (--causal).": (
            (host.mask != past).any() or (model.mask != np.tri(config.n_ctx, dtype=bool)).any()
        ),
        f"The program has {config.n_ctx} positions, the host only {own.n_ctx}.": config.n_ctx > own.n_ctx,
        f"Weights of the program are not as the compiler makes them: {', '.join(biases)}.": bool(biases),
        f"The program has {config.n_layers} layers; the host's must be as many, ascending, of {first} to "
        f"{own.n_layers - 1}; got {list(layers)}.": (
            not is_fit or any(not first <= layer < own.n_layers for layer in layers)
        ),
    }  # fmt: skip
    for reason, applies in reasons.items():
        if applies:
            raise RaspLensError(f"The program cannot be planted. {reason}")
