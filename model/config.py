"""The shape of a transformer: every number that its arrays and its forward pass depend on."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any

from rasplens.errors import RaspLensError
from rasplens.model.hook_points import EMBEDDED, act_name, norm_name, param_name

POSITIONS = ("learned", "shortformer", "sinusoidal_qk", "rotary", "none")
ACTIVATIONS = ("relu", "gelu", "gelu_new", "silu")
NORMALIZATIONS = ("none", "LN", "LNPre")


_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("positions", "activation", "normalization"), str),
    **dict.fromkeys(("smeared_keys", "identity_v", "identity_o"), bool),
    **dict.fromkeys(
        ("n_layers", "n_heads", "d_model", "d_head", "n_ctx", "d_vocab", "d_vocab_out", "d_mlp", "rotary_dim"),
        Integral,
    ),
    "attn_scale": Real,
}
"""The type that each field must have."""


@dataclass(frozen=True)
class Config:
    """The architecture of a transformer, in TransformerLens's words.

    Attributes:
        n_layers: Number of blocks, each attention and then (if `d_mlp` > 0) an MLP.
        n_heads: Heads per block.
        d_model: Width of the residual stream.
        d_head: Width of each head's queries, keys and values.
        n_ctx: Longest sequence.
        d_vocab: Number of input tokens.
        d_vocab_out: Number of logits.
        d_mlp: Neurons per block; 0 makes the model attention-only.
        positions: `"learned"` adds `W_pos` to the residual stream. `"shortformer"` adds it to what queries and
            keys read only (Press et al. 2020, "Shortformer"), and `"sinusoidal_qk"` adds fixed sinusoids to the
            queries and keys themselves, so that the residual stream never carries position. `"rotary"` turns
            queries and keys by angles that grow with the position (Su et al. 2021, "RoFormer"; the first half of
            the dimensions is paired with the second). `"none"` leaves positions out.
        attn_scale: What the attention scores are divided by; by default √d_head.
        smeared_keys: Each key is a learned mix of itself and the key before it, per head and position
            (Olsson et al. 2022, "In-context learning and induction heads", smeared keys).
        identity_v: `W_V = I`, frozen.
        identity_o: `W_O = I`, frozen; with `identity_v`, a head can only copy what it attends to.
        rotary_dim: Dimensions of each head that rotary positions turn, an even number; by default all.
        activation: Of the neurons: `"relu"`, `"gelu"`, `"gelu_new"` (GPT-2's approximation by tanh) or `"silu"`.
        normalization: `"LN"` is layer norm with a learned scale and shift before every attention, every MLP
            and the unembedding (Ba et al. 2016, as GPT-2 places it); `"LNPre"` the same without scale and
            shift; `"none"` leaves the residual stream as it is.
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    n_ctx: int
    d_vocab: int
    d_vocab_out: int
    d_mlp: int = 0
    positions: str = "learned"
    attn_scale: float = 0.0
    smeared_keys: bool = False
    identity_v: bool = False
    identity_o: bool = False
    normalization: str = "none"
    activation: str = "relu"
    rotary_dim: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), _KINDS[field.name])
        for name in ("n_layers", "d_mlp"):
            _require(getattr(self, name) >= 0, f"{name} must be 0 or more; got {getattr(self, name)}.")
        for name in ("n_heads", "d_model", "d_head", "n_ctx", "d_vocab", "d_vocab_out"):
            _require(getattr(self, name) >= 1, f"{name} must be at least 1; got {getattr(self, name)}.")
        _require(
            self.positions in POSITIONS,
            f"positions must be one of {', '.join(POSITIONS)}; got {self.positions!r}.",
        )
        for name, known in (("normalization", NORMALIZATIONS), ("activation", ACTIVATIONS)):
            value = getattr(self, name)
            _require(value in known, f"{name} must be one of {', '.join(known)}; got {value!r}.")
        if self.positions == "rotary" and self.rotary_dim == 0:
            object.__setattr__(self, "rotary_dim", self.d_head)
        fits = self.rotary_dim % 2 == 0 and self.rotary_dim in range(self.d_head + 1)
        _require(fits, f"rotary_dim must be even, and at most d_head={self.d_head}; got {self.rotary_dim}.")
        if self.attn_scale == 0.0:
            object.__setattr__(self, "attn_scale", math.sqrt(self.d_head))
        _require(self.attn_scale > 0, f"attn_scale must be positive; got {self.attn_scale}.")

    @property
    def frozen(self) -> list[str]:
        """The names of the weights that are the identity by the config, and never trained."""
        letters = [
            letter for letter, is_identity in (("V", self.identity_v), ("O", self.identity_o)) if is_identity
        ]
        return [param_name(f"W_{letter}", layer) for layer in range(self.n_layers) for letter in letters]

    @property
    def norms(self) -> list[str]:
        """The names of the layer norms that the config has, in forward order."""
        if self.normalization == "none":
            return []
        of_block = ("ln1",) if self.attn_only else ("ln1", "ln2")
        blocks = [norm_name(norm, layer) for layer in range(self.n_layers) for norm in of_block]
        return [*blocks, "ln_final"]

    @property
    def has_score_terms(self) -> bool:
        """Whether a score is a sum of terms of tokens and of positions: a key is of one place, and not turned."""
        return not self.smeared_keys and self.positions != "rotary"

    @property
    def attn_only(self) -> bool:
        """Whether the blocks have no MLP."""
        return self.d_mlp == 0

    @property
    def normalization_type(self) -> str | None:
        """The normalization, as TransformerLens calls it: "LN", "LNPre", or None."""
        return None if self.normalization == "none" else self.normalization

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Config":
        """The config that `to_dict` described.

        Raises:
            RaspLensError: If a field is missing or unknown.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise RaspLensError(f"Unknown config fields {unknown}; this version knows {sorted(known)}.")
        try:
            return cls(**values)
        except TypeError as error:
            raise RaspLensError(f"Incomplete config: {error}.") from None


def weight_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """The shape of every weight that a model of this config must have, by name, in forward order."""
    heads, width, head = config.n_heads, config.d_model, config.d_head
    shapes: dict[str, tuple[int, ...]] = {"embed.W_E": (config.d_vocab, width)}
    if config.positions in ("learned", "shortformer"):
        shapes["pos_embed.W_pos"] = (config.n_ctx, width)
    for layer in range(config.n_layers):
        for letter in "QKV":
            shapes[param_name(f"W_{letter}", layer)] = (heads, width, head)
        shapes[param_name("W_O", layer)] = (heads, head, width)
        if config.smeared_keys:
            shapes[param_name("smear", layer)] = (heads, config.n_ctx)
        if not config.attn_only:
            shapes[param_name("W_in", layer)] = (width, config.d_mlp)
            shapes[param_name("W_out", layer)] = (config.d_mlp, width)
    if config.normalization == "LN":
        shapes |= {f"{norm}.{letter}": (width,) for norm in config.norms for letter in "wb"}
    shapes["unembed.W_U"] = (width, config.d_vocab_out)
    return shapes


def bias_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """The shape of every bias that a model of this config may have; one that is absent is zero."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(config.n_layers):
        for letter in "QKV":
            shapes[param_name(f"b_{letter}", layer)] = (config.n_heads, config.d_head)
        shapes[param_name("b_O", layer)] = (config.d_model,)
        if not config.attn_only:
            shapes[param_name("b_in", layer)] = (config.d_mlp,)
            shapes[param_name("b_out", layer)] = (config.d_model,)
    shapes["unembed.b_U"] = (config.d_vocab_out,)
    return shapes


def hook_names(config: Config) -> list[str]:
    """The names of the hook points of a model of this config, in forward order."""
    names = ["hook_embed"] if config.positions in ("none", "rotary") else ["hook_embed", "hook_pos_embed"]
    turned = ("rot_q", "rot_k") if config.positions == "rotary" else ()
    attention = ("q", "k", "v", *turned, "attn_scores", "pattern", "z", "result")
    for layer in range(config.n_layers):
        names += [act_name("resid_pre", layer), *_norm_hooks(config, norm_name("ln1", layer))]
        names += [act_name(activation, layer) for activation in (*attention, "attn_out")]
        if not config.attn_only:
            names += [act_name("resid_mid", layer), *_norm_hooks(config, norm_name("ln2", layer))]
            names += [act_name(activation, layer) for activation in ("pre", "post", "mlp_out")]
        names.append(act_name("resid_post", layer))
    return names + _norm_hooks(config, "ln_final")


def residual_points(config: Config) -> list[str]:
    """Return the hook points of the residual stream, in forward order, each state once."""
    states = ("resid_post",) if config.attn_only else ("resid_mid", "resid_post")
    return [EMBEDDED, *(act_name(state, layer) for layer in range(config.n_layers) for state in states)]


def _norm_hooks(config: Config, norm: str) -> list[str]:
    return [f"{norm}.hook_{point}" for point in ("scale", "normalized") if norm in config.norms]


def _check_type(name: str, value: Any, kind: type) -> None:
    is_flag = isinstance(value, bool)
    if not isinstance(value, kind) or (is_flag and kind is not bool):
        what = {Integral: "a whole number", Real: "a number", bool: "true or false", str: "a word"}[kind]
        raise RaspLensError(f"{name} must be {what}; got {value!r}.")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise RaspLensError(message)
