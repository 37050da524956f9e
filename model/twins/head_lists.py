"""A transformer's heads taken apart, and put together again: in any number, and of any width."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.model.config import bias_shapes, weight_shapes
from rasplens.model.hook_points import param_name
from rasplens.model.transformer import Transformer

Head = Mapping[str, np.ndarray]
"""The arrays of one head in float64, by the last part of their names, without biases that are absent."""

_OWN = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "smear")

_WIDTH = {"W_Q": 1, "W_K": 1, "W_V": 1, "W_O": 0, "b_Q": 0, "b_K": 0, "b_V": 0}
"""The axis of each array that is as long as the head is wide."""


def heads_of(model: Transformer, layer: int) -> list[Head]:
    """The heads of a layer.

    Raises:
        RaspLensError: If there is no such layer.
    """
    if not 0 <= layer < model.config.n_layers:
        raise RaspLensError(f"The model has layers 0 to {model.config.n_layers - 1}; got {layer}.")
    names = {key: param_name(key, layer) for key in _OWN}
    own = {key: model.weights[name].astype(np.float64) for key, name in names.items() if name in model.weights}
    return [{key: array[head] for key, array in own.items()} for head in range(model.config.n_heads)]


def head_of(model: Transformer, layer: int, head: int) -> Head:
    """One head.

    Raises:
        RaspLensError: If there is no such head.
    """
    heads = heads_of(model, layer)
    if not 0 <= head < len(heads):
        raise RaspLensError(f"The model has heads 0 to {len(heads) - 1} in every layer; got {head}.")
    return heads[head]


def with_heads(model: Transformer, changed: Mapping[int, Sequence[Head]]) -> Transformer:
    """The transformer with other heads in some layers.

    All layers have as many heads as the one with the most, and all heads are as wide as the widest: what is
    missing is zero, and a head of zeros writes nothing. Queries and values may differ in
    width. The scale of attention scores stays.

    Args:
        model: The transformer.
        changed: By layer, its heads.

    Raises:
        RaspLensError: If positions on queries and keys depend on how many heads there are, and how wide.
    """
    if model.config.positions in ("sinusoidal_qk", "rotary"):
        raise RaspLensError(
            f"With {model.config.positions} positions, what a head attends to depends on its place and width: "
            "heads cannot be added or removed."
        )
    layers = {layer: list(changed.get(layer, heads_of(model, layer))) for layer in range(model.config.n_layers)}
    n_heads = max(map(len, layers.values()), default=model.config.n_heads)
    widths = [
        head[key].shape[axis]
        for heads in layers.values()
        for head in heads
        for key, axis in _WIDTH.items()
        if key in head
    ]
    d_head = max(widths, default=model.config.d_head)
    config = replace(model.config, n_heads=n_heads, d_head=d_head, identity_v=False, identity_o=False)
    shapes = weight_shapes(config) | bias_shapes(config)
    weights = dict(model.weights)
    for layer, heads in layers.items():
        for key in _OWN:
            name = param_name(key, layer)
            if any(key in head for head in heads):
                weights[name] = np.zeros(shapes[name], model.dtype)
                for place, head in enumerate(heads):
                    if key in head:
                        weights[name][place] = _padded(head[key], key, d_head)
            elif name in weights:
                weights[name] = np.zeros(shapes[name], model.dtype)
    return Transformer(config, weights, model.mask)


def _padded(array: np.ndarray, key: str, width: int) -> np.ndarray:
    if key not in _WIDTH:
        return array
    axis = _WIDTH[key]
    return np.pad(array, [(0, width - array.shape[axis] if i == axis else 0) for i in range(array.ndim)])
