"""The same function in other weights: what a comparison may not notice, and what a blind test may not give away.

A transformer has symmetries: its residual stream may be rotated, its heads permuted, the basis inside a head
changed, its ReLU neurons permuted and rescaled, and its residual stream widened by directions that nobody
reads. A disguise applies all of them at random (Elhage et al. 2021, "A Mathematical Framework for Transformer
Circuits", on which bases are privileged).
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from rasplens.model import random_streams
from rasplens.model.change_of_basis import on_residual
from rasplens.model.transformer import HasTransformer, Transformer

KINDS = ("residual", "heads", "neurons")
"""What a disguise changes: the basis of the residual stream, order and inner bases of heads, neurons."""

GAUGE = 2.0
"""The most that a direction inside a head, or a neuron, is stretched; the least is its inverse."""

N_PROBES = 64
"""Random inputs on which noise is measured, unless others are given."""

_HALVINGS = 40

Arrays = dict[str, np.ndarray]


def disguise(
    model: HasTransformer,
    seed: int = 0,
    *,
    kinds: Collection[str] = KINDS,
    extra_width: int = 0,
    noise: float = 0.0,
    tokens: Int[np.ndarray, "batch pos"] | None = None,
) -> Transformer:
    """A transformer with other weights that computes the same function.

    With sinusoids on queries and keys, heads keep their order and the bases of queries and keys, which the
    sinusoids fix; their values and outputs change.

    Args:
        model: The transformer to disguise, or a model that has one.
        seed: Of everything random.
        kinds: What to change, of `KINDS`.
        extra_width: Directions to add to the residual stream; with `"residual"` they hold a share of
            everything.
        noise: If positive, Gaussian noise is added to every weight, in proportion to the largest of its
            array, as much as changes no logit by more than this on `tokens`.
        tokens: The inputs on which the noise is measured; by default random ones.

    Raises:
        ValueError: If a kind is unknown, a size negative, or the residual stream of a model with layer norm is
            to be rotated or widened: its directions are privileged.
    """
    model = model.transformer
    _check(model, kinds, extra_width, noise)
    rng = random_streams.rng(seed, "disguise")
    weights = {name: array.astype(np.float64) for name, array in model.weights.items()}
    config = model.config
    if kinds or extra_width or noise:  # what was the identity no longer is
        config = replace(config, identity_v=False, identity_o=False, d_model=config.d_model + extra_width)
    if extra_width:
        weights = _widened(weights, extra_width)
    if "residual" in kinds:
        weights = _rotated(weights, config.d_model, rng)
    for layer in range(config.n_layers):
        if "heads" in kinds:
            weights |= _regauged(weights, f"blocks.{layer}.attn.", config.positions == "sinusoidal_qk", rng)
        if "neurons" in kinds and not config.attn_only:
            weights |= _shuffled_neurons(weights, f"blocks.{layer}.mlp.", rng)
    twin = Transformer(config, {name: a.astype(model.dtype) for name, a in weights.items()}, model.mask)
    if noise:
        if tokens is None:
            tokens = rng.integers(0, config.d_vocab, (N_PROBES, config.n_ctx))
        twin = _with_noise(model, twin, noise, tokens, rng)
    return twin


def _check(model: Transformer, kinds: Collection[str], extra_width: int, noise: float) -> None:
    if isinstance(kinds, str) or (unknown := [kind for kind in kinds if kind not in KINDS]):
        named = kinds if isinstance(kinds, str) else unknown[0]
        raise ValueError(f"kinds must be some of {', '.join(KINDS)}, as a list; got {named!r}.")
    if extra_width < 0 or noise < 0:
        raise ValueError(f"extra_width and noise must be 0 or more; got {extra_width} and {noise}.")
    if model.config.normalization != "none" and ("residual" in kinds or extra_width):
        raise ValueError(
            "Layer norm privileges the directions of the residual stream: it cannot be rotated or widened. Leave "
            'out "residual" and extra_width.'
        )


def _widened(weights: Arrays, extra: int) -> Arrays:
    def pad(array: np.ndarray, axis: int) -> np.ndarray:
        return np.pad(array, [(0, extra if i == array.ndim + axis else 0) for i in range(array.ndim)])

    return on_residual(weights, lambda array: pad(array, -2), lambda array: pad(array, -1))


def _rotated(weights: Arrays, width: int, rng: np.random.Generator) -> Arrays:
    rotation = _rotation(width, rng)
    return on_residual(weights, lambda array: rotation.T @ array, lambda array: array @ rotation)


def _regauged(weights: Arrays, name: str, has_fixed_queries: bool, rng: np.random.Generator) -> Arrays:
    """Heads in another order, with other bases for queries and keys, and for values and outputs."""
    n_heads, _, d_head = weights[f"{name}W_Q"].shape
    own = {key: array for key, array in weights.items() if key.startswith(name) and not key.endswith("b_O")}
    if not has_fixed_queries:
        order = rng.permutation(n_heads)
        own = {key: array[order] for key, array in own.items()}
    scores, values = (np.stack([_stretched_rotation(d_head, rng) for _ in range(n_heads)]) for _ in range(2))
    changes = {"V": values, "O": np.linalg.inv(values)}
    if not has_fixed_queries:
        changes |= {"Q": scores, "K": np.linalg.inv(scores).transpose(0, 2, 1)}
    for letter, change in changes.items():
        weight, bias = f"{name}W_{letter}", f"{name}b_{letter}"
        if letter == "O":
            own[weight] = change @ own[weight]
            continue
        own[weight] = own[weight] @ change
        if bias in own:
            own[bias] = (own[bias][:, None] @ change)[:, 0]
    return own


def _shuffled_neurons(weights: Arrays, name: str, rng: np.random.Generator) -> Arrays:
    """Neurons in another order, each stretched: a ReLU lets positive factors through."""
    n = weights[f"{name}W_in"].shape[1]
    order, factors = rng.permutation(n), np.exp(rng.uniform(-1, 1, n) * np.log(GAUGE))
    changed = {
        f"{name}W_in": weights[f"{name}W_in"][:, order] * factors,
        f"{name}W_out": weights[f"{name}W_out"][order] / factors[:, None],
    }
    if f"{name}b_in" in weights:
        changed[f"{name}b_in"] = weights[f"{name}b_in"][order] * factors
    return changed


def _rotation(n: int, rng: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """A rotation or reflection, uniformly distributed (Mezzadri 2007, "How to generate random matrices")."""
    orthogonal, upper = np.linalg.qr(rng.normal(size=(n, n)))
    return orthogonal * np.sign(np.diag(upper))


def _stretched_rotation(n: int, rng: np.random.Generator) -> Float[np.ndarray, "n n"]:
    return _rotation(n, rng) * np.exp(rng.uniform(-1, 1, n) * np.log(GAUGE))


def _with_noise(
    model: Transformer, twin: Transformer, most: float, tokens: np.ndarray, rng: np.random.Generator
) -> Transformer:
    """The twin with as much noise as the logits allow, found by halving.

    Raises:
        ValueError: If the twin itself differs by more already, by rounding.
    """
    logits = model(tokens)
    directions = {name: rng.normal(size=array.shape) * np.abs(array).max() for name, array in twin.weights.items()}

    def at(scale: float) -> Transformer:
        weights = {
            name: (array + scale * directions[name]).astype(array.dtype) for name, array in twin.weights.items()
        }
        return Transformer(twin.config, weights, twin.mask)

    scale = 1.0
    for _ in range(_HALVINGS):
        noisy = at(scale)
        if np.abs(noisy(tokens) - logits).max() <= most:
            return noisy
        scale /= 2
    raise ValueError(f"No noise changes the logits by less than {most:g}: rounding alone does. Allow more.")
