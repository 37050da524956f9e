"""The transformer that both sides of a comparison produce: a config, a mask and named weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from rasplens.errors import RaspLensError
from rasplens.model.config import Config, bias_shapes, weight_shapes
from rasplens.model.forward import Array, Hook, forward, no_hook

Weights = Mapping[str, np.ndarray]
Cache = dict[str, np.ndarray]


@runtime_checkable
class HasTransformer(Protocol):
    """A compiled, learned or compressed model, or a `Transformer` itself."""

    @property
    def transformer(self) -> "Transformer":
        """Its weights, and how they run."""


@runtime_checkable
class Hooked(Protocol):
    """A torch module with TransformerLens's hook points: a `HookedModel` or a `TransformerBridge`."""

    cfg: Any
    hook_dict: Any

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """The logits while hooks edit activations."""

    def run_with_cache(self, *args: Any, **kwargs: Any) -> Any:
        """The logits, and the activations by hook point."""


AnyModel = HasTransformer | Hooked
"""A model that can be compared: weights, what has them, or a torch module with hook points."""


@dataclass(frozen=True, eq=False)
class Transformer:
    """A validated, read-only transformer.

    Names and axis order are TransformerLens's, so the state dict of a legacy `HookedTransformer` fits
    unchanged. A bias that is absent is zero.

    Attributes:
        config: The architecture.
        weights: Floating-point arrays of one dtype, by name; see `weight_shapes` and `bias_shapes`.
        mask: Boolean `[layer, query, key]`; see `rasplens.model.mask`.

    Raises:
        RaspLensError: If an array is missing, unknown, of the wrong shape or dtype, or not finite.
    """

    config: Config
    weights: Weights
    mask: np.ndarray

    def __post_init__(self) -> None:
        weights = {name: _owned(self.weights[name]) for name in self.weights}
        mask = np.array(self.mask)
        _check_names(self.config, weights)
        _check_arrays(self.config, weights)
        _check_mask(self.config, mask)
        _check_frozen(self.config, weights)
        for array in (*weights.values(), mask):
            array.flags.writeable = False
        object.__setattr__(self, "weights", MappingProxyType(weights))
        object.__setattr__(self, "mask", mask)

    @property
    def transformer(self) -> "Transformer":
        """Itself, so that it can stand wherever a model that has a transformer can."""
        return self

    @property
    def dtype(self) -> np.dtype:
        """The dtype of every weight."""
        return self.weights["embed.W_E"].dtype

    @property
    def n_params(self) -> int:
        """The number of weights and biases, zeros included."""
        return sum(array.size for array in self.weights.values())

    @property
    def W_E(self) -> Float[np.ndarray, "d_vocab d_model"]:
        """The token embedding."""
        return self.weights["embed.W_E"]

    @property
    def W_U(self) -> Float[np.ndarray, "d_model d_vocab_out"]:
        """The unembedding."""
        return self.weights["unembed.W_U"]

    def astype(self, dtype: type | str | np.dtype) -> "Transformer":
        """Return the transformer with its weights in another floating-point dtype."""
        return Transformer(self.config, {k: v.astype(dtype) for k, v in self.weights.items()}, self.mask)

    def __call__(self, tokens: Int[np.ndarray, "batch pos"]) -> Float[np.ndarray, "batch pos d_vocab_out"]:
        """Logits, by the numpy reference.

        Raises:
            RaspLensError: If the tokens do not fit the config, or a logit is not finite.
        """
        return self._logits(tokens, no_hook)

    def run_with_cache(
        self, tokens: Int[np.ndarray, "batch pos"]
    ) -> tuple[Float[np.ndarray, "batch pos d_vocab_out"], Cache]:
        """Logits and every activation by hook name, by the numpy reference.

        Raises:
            RaspLensError: If the tokens do not fit the config, or a logit is not finite.
        """
        cache: Cache = {}

        def store(name: str, value: np.ndarray) -> np.ndarray:
            cache[name] = value
            return value

        return self._logits(tokens, store), cache

    def _logits(self, tokens: np.ndarray, hook: Hook) -> np.ndarray:
        """Finite logits; of floating-point flags, OpenBLAS raises some without cause (numpy issue 24067)."""
        check_tokens(self.config, tokens)
        with np.errstate(all="ignore"):
            logits = forward(self.weights, self.mask, self.config, tokens, hook)
        if not np.isfinite(logits).all():
            raise RaspLensError(
                f"A logit is not finite: an activation is too large for {self.dtype}. Use smaller weights."
            )
        return logits

    def __repr__(self) -> str:
        return f"Transformer({in_a_line(self.config)}, {self.n_params:,} parameters)"


def in_a_line(config: Config) -> str:
    """The sizes of a model."""
    kind = "attention-only" if config.attn_only else f"d_mlp={config.d_mlp}"
    return (
        f"{config.n_layers} layers × {config.n_heads} heads, d_model={config.d_model}, {kind}, "
        f"{config.d_vocab} tokens → {config.d_vocab_out} logits"
    )


def transformer_of(model: object) -> Transformer | None:
    """The transformer of a model that has one; None of anything else, such as a torch module."""
    found = getattr(model, "transformer", None)
    return found if isinstance(found, Transformer) else None


def check_tokens(config: Config, tokens: Array) -> None:
    """Raises where token ids do not fit a config, whichever backend is to run them.

    Raises:
        RaspLensError: If they are no `[batch, pos]` integers, too long, or outside the vocabulary.
    """
    if not hasattr(tokens, "ndim") or "int" not in str(tokens.dtype):
        kind = f"{tokens.dtype}" if hasattr(tokens, "dtype") else type(tokens).__name__
        raise RaspLensError(f"tokens must be an array of whole numbers, [batch, pos]; got {kind}.")
    if tokens.ndim != 2:
        raise RaspLensError(f"tokens must be [batch, pos]; got shape {tuple(tokens.shape)}.")
    if tokens.shape[1] > config.n_ctx:
        raise RaspLensError(f"Sequences have {tokens.shape[1]} positions; the model has n_ctx={config.n_ctx}.")
    if tokens.shape[0] and tokens.shape[1] and not (tokens.min() >= 0 and tokens.max() < config.d_vocab):
        raise RaspLensError(
            f"Token ids run from {int(tokens.min())} to {int(tokens.max())}; "
            f"the model knows 0 to {config.d_vocab - 1}."
        )


def _owned(array: np.ndarray) -> np.ndarray:
    """A copy that nobody else writes to; the array itself if nobody can."""
    is_safe = isinstance(array, np.ndarray) and array.base is None and not array.flags.writeable
    return array if is_safe else np.array(array)


def _check_names(config: Config, weights: Weights) -> None:
    required, optional = weight_shapes(config), bias_shapes(config)
    if missing := [name for name in required if name not in weights]:
        raise RaspLensError(f"Missing weights: {', '.join(missing)}.")
    if unknown := [name for name in weights if name not in required and name not in optional]:
        raise RaspLensError(f"Unknown weights: {', '.join(unknown)}. This config has {', '.join(required)}.")


def _check_arrays(config: Config, weights: Weights) -> None:
    expected = weight_shapes(config) | bias_shapes(config)
    dtype = weights["embed.W_E"].dtype
    for name, array in weights.items():
        if array.shape != expected[name]:
            raise RaspLensError(f"{name} must have shape {expected[name]}; got {array.shape}.")
        if not np.issubdtype(array.dtype, np.floating):
            raise RaspLensError(f"{name} must be floating-point; got {array.dtype}.")
        if array.dtype != dtype:
            raise RaspLensError(f"Weights must share one dtype; embed.W_E is {dtype}, {name} is {array.dtype}.")
        if not np.isfinite(array).all():
            raise RaspLensError(f"{name} has NaN or infinite entries.")


def _check_mask(config: Config, mask: np.ndarray) -> None:
    expected = (config.n_layers, config.n_ctx, config.n_ctx)
    if mask.shape != expected:
        raise RaspLensError(f"mask must have shape {expected} (layer, query, key); got {mask.shape}.")
    if mask.dtype != bool:
        raise RaspLensError(f"mask must be boolean; got {mask.dtype}.")


def _check_frozen(config: Config, weights: Weights) -> None:
    for name in config.frozen:
        if not (weights[name] == np.eye(*weights[name].shape[1:])).all():
            raise RaspLensError(f"The config says that {name} is the identity; it is not.")
