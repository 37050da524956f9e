"""How a state dict may be read: shapes do not tell everything; what they leave open is declared or tried."""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.learned.importers.state_dicts import StateDict
from rasplens.model import Config, bias_shapes, weight_shapes
from rasplens.model.config import ACTIVATIONS
from rasplens.model.hook_points import param_name

STANDARD = "standard"
"""TransformerLens's word for learned positions in the residual stream."""


@dataclass(frozen=True)
class Declared:
    """The settings declared for a state dict because its shapes do not tell them. None leaves one open.

    Attributes:
        n_heads: Heads per layer; needed for the state dict of a bridge.
        positions: "standard", "shortformer", "rotary" or "none", TransformerLens's `positional_embedding_type`.
        activation: Of the neurons, TransformerLens's `act_fn`.
        normalization: "none", or "LNPre" for layer norm without weights.
        attn_scale: What attention scores are divided by, a number.
    """

    n_heads: int | None = None
    positions: str | None = None
    activation: str | None = None
    normalization: str | None = None
    attn_scale: float | None = None

    def __post_init__(self) -> None:
        if self.attn_scale is not None and not 0 < self.attn_scale < math.inf:
            raise RaspLensError(
                f"attn_scale, which scores are divided by, must be above 0; got {self.attn_scale}."
            )


NOTHING_DECLARED = Declared()


def readings(state: StateDict, declared: Declared, n_ctx: int | None, what: str) -> list[Config]:
    """Every architecture that the names, the shapes and what is declared allow; the likeliest first.

    Args:
        state: The state dict.
        declared: What is said of it.
        n_ctx: The longest sequence, if the shapes do not say.
        what: What the state dict is, for messages.

    Raises:
        RaspLensError: If it has parts that this package has no model for, lacks some, or contradicts what is
            declared.
    """
    first = _by_shapes(state, n_ctx, what)
    positions = _choice("positions", _positions(state, what, declared), declared, what)
    activations = _choice("activation", list(ACTIVATIONS) if first.d_mlp else ["relu"], declared, what)
    norms = ["LN"] if "ln_final.w" in state.weights else ["none", "LNPre"]
    norms = _choice("normalization", norms, declared, what)
    scales = [math.sqrt(first.d_head), 1.0] if declared.attn_scale is None else [declared.attn_scale]
    found = [
        replace(
            first,
            positions=position,
            activation=activation,
            normalization=norm,
            attn_scale=scale,
            rotary_dim=0 if state.rotary_sin is None else state.rotary_sin.shape[1],
        )
        for scale, norm, position, activation in itertools.product(scales, norms, positions, activations)
    ]
    known = set(weight_shapes(found[0])) | set(bias_shapes(found[0]))
    if unknown := sorted(set(state.weights) - known):
        raise RaspLensError(
            f"{what} has parts that RASPLens does not support: {', '.join(unknown[:4])}"
            f"{', …' if len(unknown) > 4 else ''}."
        )
    return found


def difference(chosen: Config, other: Config) -> dict[str, Any]:
    """Return what would have to be declared for the other reading to be the one that is chosen."""
    words = {"learned": STANDARD}
    return {
        field.name: words.get(value, value)
        for field in fields(Declared)
        if (value := getattr(other, field.name)) != getattr(chosen, field.name)
    }


def _positions(state: StateDict, what: str, declared: Declared) -> list[str]:
    if "pos_embed.W_pos" in state.weights:
        return ["learned", "shortformer"]
    if state.rotary_sin is not None:
        return ["rotary"]
    if declared.positions is None:
        raise RaspLensError(
            f"{what} has no position embedding, and does not say whether its positions are rotary. Give "
            "positions: rotary or none."
        )
    return ["rotary", "none"]


def _choice(name: str, possible: list[str], declared: Declared, what: str) -> list[str]:
    """Return the declared choice, if it is possible; all possible ones, if none is declared.

    Raises:
        RaspLensError: If it is not possible.
    """
    wanted = getattr(declared, name)
    if wanted is None:
        return possible
    wanted = "learned" if wanted == STANDARD else wanted
    if wanted not in possible:
        names = [STANDARD if one == "learned" else one for one in possible]
        raise RaspLensError(
            f"{what} cannot have {name} {getattr(declared, name)!r}: its weights allow only {' or '.join(names)}."
        )
    return [wanted]


def _by_shapes(state: StateDict, n_ctx: int | None, what: str) -> Config:
    shapes: dict[str, Any] = {name: array.shape for name, array in state.weights.items()}
    layers = {int(m.group(1)) for name in shapes if (m := re.match(r"blocks\.(\d+)\.", name))}
    try:
        d_vocab, d_model = shapes["embed.W_E"]
        n_heads, _, d_head = shapes["blocks.0.attn.W_Q"]
        d_vocab_out = shapes["unembed.W_U"][1]
    except KeyError as error:
        raise RaspLensError(f"{what} is not a state dict of a HookedTransformer: {error} is missing.") from None
    except (ValueError, IndexError):
        wanted = {"embed.W_E": 2, "blocks.0.attn.W_Q": 3, "unembed.W_U": 2}
        name = next(name for name, n_axes in wanted.items() if len(shapes[name]) != n_axes)
        raise RaspLensError(
            f"{what} is not a state dict of a HookedTransformer: {name!r} is of shape {tuple(shapes[name])}, not "
            f"of {wanted[name]} axes."
        ) from None
    longest = state.n_ctx or n_ctx
    if longest is None:
        raise RaspLensError(f"{what} does not say how many positions it has. Give the task that it learned.")
    return Config(
        n_layers=len(layers),
        n_heads=n_heads,
        d_model=d_model,
        d_head=d_head,
        n_ctx=longest,
        d_vocab=d_vocab,
        d_vocab_out=d_vocab_out,
        d_mlp=shapes.get("blocks.0.mlp.W_in", (0, 0))[1],
        identity_v=_is_identity(state.weights, len(layers), "V"),
        identity_o=_is_identity(state.weights, len(layers), "O"),
    )


def _is_identity(weights: Mapping[str, np.ndarray], n_layers: int, letter: str) -> bool:
    matrices = [weights.get(param_name(f"W_{letter}", layer), np.zeros((1, 1, 1))) for layer in range(n_layers)]
    return all((matrix == np.eye(*matrix.shape[1:])).all() for matrix in matrices)
