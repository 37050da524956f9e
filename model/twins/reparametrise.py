"""Twins in other weights: what a comparison may not notice, and what a blind test may not give away.

A transformer has symmetries: its residual stream may be rotated or take any other basis, its heads be permuted,
the basis inside a head changed, its neurons permuted and, with a ReLU, rescaled, and its residual stream widened
by directions that nobody reads. A disguise applies all of them at random (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits", on which bases are privileged).
"""

import functools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, overload, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.model.hook_points import param_name
from rasplens.model.transformer import HasTransformer, Transformer
from rasplens.model.twins.change_of_basis import (
    ChangeOfBasis,
    in_basis,
    oblique,
    random_rotation,
    rotation,
    widening,
)

KINDS = ("residual", "heads", "neurons")
"""The parts that a disguise changes: the basis of the residual stream, order and inner bases of heads, neurons."""

BASES = ("orthogonal", "oblique")
"""How the residual stream is turned: by a rotation, or by any invertible map."""

GAUGE = 2.0
"""The most that a direction inside a head, or a neuron, is stretched; the least is its inverse."""

N_PROBES = 64
"""Random inputs on which noise is measured, unless others are given."""

_HALVINGS = 40

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Reparametrisation:
    """A transformer in other weights, and where its parts went.

    Attributes:
        transformer: The twin.
        residual: What became of the directions of the residual stream.
        heads: By layer, for each head of the twin which one it was.
        neurons: By layer, for each neuron of the twin which one it was.
    """

    transformer: Transformer
    residual: ChangeOfBasis
    heads: tuple[Int[np.ndarray, " head"], ...]
    neurons: tuple[Int[np.ndarray, " neuron"], ...]


@runtime_checkable
class Reparametrisable(HasTransformer, Protocol):
    """A model that knows what its parts mean, and goes on knowing it in other weights."""

    def reparametrised(self, change: Reparametrisation) -> HasTransformer:
        """Return the model in other weights, of the same kind."""


Described = TypeVar("Described", bound=Reparametrisable)


# A described model is handed back as what it is; mypy cannot know that the first signature that fits is taken.
@overload
def disguise(  # type: ignore[overload-overlap]
    model: Described,
    seed: int = ...,
    *,
    kinds: Collection[str] = ...,
    extra_width: int = ...,
    basis: str = ...,
    condition: float = ...,
    noise: float = ...,
    tokens: Int[np.ndarray, "batch pos"] | None = ...,
) -> Described: ...


@overload
def disguise(
    model: HasTransformer,
    seed: int = ...,
    *,
    kinds: Collection[str] = ...,
    extra_width: int = ...,
    basis: str = ...,
    condition: float = ...,
    noise: float = ...,
    tokens: Int[np.ndarray, "batch pos"] | None = ...,
) -> Transformer: ...


def disguise(
    model: HasTransformer,
    seed: int = 0,
    *,
    kinds: Collection[str] = KINDS,
    extra_width: int = 0,
    basis: str = "orthogonal",
    condition: float = 10.0,
    noise: float = 0.0,
    tokens: Int[np.ndarray, "batch pos"] | None = None,
) -> HasTransformer:
    """A model with other weights that computes the same function.

    With sinusoids or rotary positions on queries and keys, heads keep their order and the bases of queries and
    keys, which those fix; their values and outputs change.

    Args:
        model: The transformer to disguise, or a model that has one.
        seed: Of everything random.
        kinds: What to change, of `KINDS`.
        extra_width: Directions to add to the residual stream; with `"residual"` they hold a share of
            everything.
        basis: The new basis of the residual stream, of `BASES`: `"oblique"` is any invertible map, under which
            angles and lengths change but no function does.
        condition: The condition number of an oblique basis: how much more it stretches one direction than
            another.
        noise: If positive, Gaussian noise is added to every weight, in proportion to the largest of its
            array, as much as changes no logit by more than this on `tokens`.
        tokens: The inputs on which the noise is measured; by default random ones.

    Returns:
        A transformer; of a compiled model a compiled model, whose variables, heads and neurons stay known.

    Raises:
        RaspLensError: If a kind or a basis is unknown, a size negative, a condition below 1, or the residual
            stream of a model with layer norm is to be rotated or widened: its directions are privileged.
    """
    _check(model.transformer, kinds, extra_width, noise)
    _check_basis(kinds, basis, condition)
    rng = random_streams.rng(seed, "disguise")
    width = model.transformer.config.d_model + extra_width
    changes = [widening(model.transformer.config.d_model, extra_width)]
    if "residual" in kinds:
        changes.append(rotation(width, rng) if basis == "orthogonal" else oblique(width, condition, rng))
    change = _reparametrised(model.transformer, changes, kinds, rng)
    if noise:
        config = model.transformer.config
        if tokens is None:
            tokens = rng.integers(0, config.d_vocab, (N_PROBES, config.n_ctx))
        noisy = _with_noise(model.transformer, _without_identities(change.transformer), noise, tokens, rng)
        change = replace(change, transformer=noisy)
    return model.reparametrised(change) if isinstance(model, Reparametrisable) else change.transformer


def _reparametrised(
    model: Transformer, changes: Sequence[ChangeOfBasis], kinds: Collection[str], rng: np.random.Generator
) -> Reparametrisation:
    weights = {name: array.astype(np.float64) for name, array in model.weights.items()}
    for change in changes:
        weights = in_basis(weights, change)
    residual, config = functools.reduce(ChangeOfBasis.then, changes), model.config
    if kinds or len(residual.reads) > config.d_model:  # what was the identity no longer is
        config = replace(config, identity_v=False, identity_o=False, d_model=len(residual.reads))
    heads, neurons = [], []
    for layer in range(config.n_layers):
        heads.append(np.arange(config.n_heads))
        neurons.append(np.arange(config.d_mlp))
        if "heads" in kinds:
            has_fixed_queries = config.positions in ("sinusoidal_qk", "rotary")
            if not has_fixed_queries:
                heads[layer] = rng.permutation(config.n_heads)
            weights |= _regauged(weights, layer, heads[layer], has_fixed_queries, rng)
        if "neurons" in kinds and not config.attn_only:
            neurons[layer] = rng.permutation(config.d_mlp)
            gauge = GAUGE if config.activation == "relu" else 1.0
            weights |= _shuffled_neurons(weights, layer, neurons[layer], gauge, rng)
    twin = Transformer(config, {name: a.astype(model.dtype) for name, a in weights.items()}, model.mask)
    return Reparametrisation(twin, residual, tuple(heads), tuple(neurons))


def _without_identities(model: Transformer) -> Transformer:
    """Return the transformer in a form whose values and outputs may be changed."""
    return Transformer(replace(model.config, identity_v=False, identity_o=False), model.weights, model.mask)


def _check(model: Transformer, kinds: Collection[str], extra_width: int, noise: float) -> None:
    if isinstance(kinds, str) or (unknown := [kind for kind in kinds if kind not in KINDS]):
        named = kinds if isinstance(kinds, str) else unknown[0]
        raise RaspLensError(f"kinds must be a list of some of {', '.join(KINDS)}; got {named!r}.")
    if extra_width < 0 or noise < 0:
        raise RaspLensError(f"extra_width and noise must be 0 or more; got {extra_width} and {noise}.")
    if model.config.normalization != "none" and ("residual" in kinds or extra_width):
        raise RaspLensError(
            "With layer norm, the residual stream cannot be rotated or widened: leave out "
            '"residual" and extra_width.'
        )


def _check_basis(kinds: Collection[str], basis: str, condition: float) -> None:
    if basis not in BASES:
        raise RaspLensError(f"basis must be one of {', '.join(BASES)}; got {basis!r}.")
    if not 1 <= condition < math.inf:
        raise RaspLensError(f"condition must be a number of at least 1; got {condition}.")
    if basis == "oblique" and "residual" not in kinds:
        raise RaspLensError('An oblique basis changes the residual stream: add "residual" to kinds.')


def _regauged(
    weights: Arrays, layer: int, order: np.ndarray, has_fixed_queries: bool, rng: np.random.Generator
) -> Arrays:
    """Heads in another order, with other bases for queries and keys, and for values and outputs."""
    n_heads, _, d_head = weights[param_name("W_Q", layer)].shape
    of_heads = [param_name(name, layer) for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "smear")]
    own = {name: weights[name][order] for name in of_heads if name in weights}
    scores, values = (np.stack([_stretched_rotation(d_head, rng) for _ in range(n_heads)]) for _ in range(2))
    changes = {"V": values, "O": np.linalg.inv(values)}
    if not has_fixed_queries:
        changes |= {"Q": scores, "K": np.linalg.inv(scores).transpose(0, 2, 1)}
    for letter, change in changes.items():
        weight, bias = param_name(f"W_{letter}", layer), param_name(f"b_{letter}", layer)
        if letter == "O":
            own[weight] = change @ own[weight]
            continue
        own[weight] = own[weight] @ change
        if bias in own:
            own[bias] = (own[bias][:, None] @ change)[:, 0]
    return own


def _shuffled_neurons(
    weights: Arrays, layer: int, order: np.ndarray, gauge: float, rng: np.random.Generator
) -> Arrays:
    """Neurons in another order, each stretched by up to `gauge`: a ReLU lets positive factors through."""
    factors = np.exp(rng.uniform(-1, 1, len(order)) * np.log(gauge))
    W_in, W_out, b_in = (param_name(name, layer) for name in ("W_in", "W_out", "b_in"))
    changed = {W_in: weights[W_in][:, order] * factors, W_out: weights[W_out][order] / factors[:, None]}
    return changed | ({b_in: weights[b_in][order] * factors} if b_in in weights else {})


def _stretched_rotation(n: int, rng: np.random.Generator) -> Float[np.ndarray, "n n"]:
    return random_rotation(n, rng) * np.exp(rng.uniform(-1, 1, n) * np.log(GAUGE))


def _with_noise(
    model: Transformer, twin: Transformer, most: float, tokens: np.ndarray, rng: np.random.Generator
) -> Transformer:
    """The twin with as much noise as the logits allow, found by halving.

    Raises:
        RaspLensError: If the twin itself differs by more already, by rounding.
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
    raise RaspLensError(f"Rounding alone changes the logits by more than noise={most:g}. Allow more.")
