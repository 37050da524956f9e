"""Two transformers in one residual stream, whose logits are added."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.model.config import Config, bias_shapes, weight_shapes
from rasplens.model.transformer import HasTransformer, Transformer

SAME: Final = ("n_ctx", "d_vocab", "d_vocab_out", "activation")
"""Fields of the configs that have to be the same."""

_AXES: Final[Mapping[str, tuple[str, ...]]] = {
    "W_E": ("", "d_model"),
    "W_pos": ("", "d_model"),
    **dict.fromkeys(("W_Q", "W_K", "W_V"), ("n_heads", "d_model", "")),
    "W_O": ("n_heads", "", "d_model"),
    **dict.fromkeys(("b_Q", "b_K", "b_V"), ("n_heads", "")),
    "b_O": ("d_model",),
    "W_in": ("d_model", "d_mlp"),
    "b_in": ("d_mlp",),
    "W_out": ("d_mlp", "d_model"),
    "b_out": ("d_model",),
    "W_U": ("d_model", ""),
    "b_U": ("",),
    "w": ("d_model",),
    "b": ("d_model",),
}
"""By the last part of a weight's name, the axes along which both stand behind one another."""


def side_by_side(first: HasTransformer, second: HasTransformer, shares: tuple[float, float]) -> Transformer:
    """Both transformers in one, each in directions of its own; the logits are a weighted sum of theirs.

    A layer has the heads and neurons of the one and then those of the other. The last layers of the shorter one
    are empty.

    Args:
        first: The one.
        second: The other, for the same tokens, positions and logits, with the same mask.
        shares: By what the logits of each are multiplied.

    Raises:
        RaspLensError: If they take or give something else, see otherwise, or have layer norm, smeared keys or
            positions that depend on the number of heads.
    """
    both = first.transformer, second.transformer
    _check(*both)
    config, dtype = _config(*(one.config for one in both)), both[0].dtype
    shapes = weight_shapes(config) | bias_shapes(config)
    found = {name: np.zeros(shape) for name, shape in shapes.items()}
    offsets = dict.fromkeys(("d_model", "n_heads", "d_mlp"), 0)
    for one, share in zip(both, shares, strict=True):
        for name, array in one.weights.items():
            last = name.rsplit(".", 1)[1]
            scale = share if last.endswith("_U") else 1 / one.config.attn_scale if last.endswith("_Q") else 1.0
            add_part(found, name, scale * array.astype(np.float64), offsets)
        offsets = {axis: start + getattr(one.config, axis) for axis, start in offsets.items()}
    mask = max((one.mask for one in both), key=len)
    return Transformer(config, {name: array.astype(dtype) for name, array in found.items()}, mask)


def add_part(
    found: Mapping[str, np.ndarray],
    name: str,
    array: np.ndarray,
    offsets: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Adds an array to the part of a weight that lies behind what others have, by the axes of `_AXES`."""
    starts = [offsets.get(axis, 0) for axis in _AXES[name.rsplit(".", 1)[1]]]
    place = tuple(slice(start, start + n) for start, n in zip(starts, array.shape, strict=True))
    found[name][place] += array


def _config(first: Config, second: Config) -> Config:
    """That of both together; the scale of attention scores is in the queries."""
    sums = {name: getattr(first, name) + getattr(second, name) for name in ("n_heads", "d_model", "d_mlp")}
    most = {name: max(getattr(first, name), getattr(second, name)) for name in ("n_layers", "d_head")}
    positions = "learned" if "learned" in (first.positions, second.positions) else "none"
    return replace(first, **sums, **most, positions=positions, attn_scale=1.0, identity_v=False, identity_o=False)


def _check(first: Transformer, second: Transformer) -> None:
    ours, other = first.config, second.config
    if differing := [name for name in SAME if getattr(ours, name) != getattr(other, name)]:
        of_both = " and ".join(str(getattr(config, differing[0])) for config in (ours, other))
        raise RaspLensError(f"Models side by side have the same {differing[0]}; got {of_both}.")
    for config in (ours, other):
        if config.normalization != "none" or config.smeared_keys or config.positions not in ("learned", "none"):
            raise RaspLensError(
                "Models side by side have no layer norm or smeared keys, and learned positions or none."
            )
    masks = np.concatenate([first.mask, second.mask])
    if len(masks) and (masks != masks[:1]).any():
        raise RaspLensError("Models side by side have one mask in every layer.")
