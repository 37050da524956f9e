"""Twins with more layers, which compute the same function."""

from dataclasses import replace

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.model.config import weight_shapes
from rasplens.model.hook_points import in_layer, is_of_layer, layer_of
from rasplens.model.mask import causal_mask
from rasplens.model.transformer import HasTransformer, Transformer


def insert_idle_layer(model: HasTransformer, at: int, seed: int = 0) -> Transformer:
    """The transformer with a layer that computes something and writes nothing.

    Its heads attend, and its neurons fire, as random ones do; it sees what the layer sees that it stands before,
    or else the last one.

    Args:
        model: The model.
        at: The number that the new layer gets: 0 for before the first, the number of layers for behind the last.
        seed: Of its weights.

    Raises:
        RaspLensError: If there is no such place.
    """
    model = model.transformer
    config = model.config
    if not 0 <= at <= config.n_layers:
        raise RaspLensError(f"A layer can be inserted at 0 to {config.n_layers}; got {at}.")
    config = replace(config, n_layers=config.n_layers + 1, identity_v=False, identity_o=False)
    weights = {_renumbered(name, at): array for name, array in model.weights.items()}
    rng = random_streams.rng(seed, "twins")
    for name, shape in weight_shapes(config).items():
        if name not in weights:
            weights[name] = _idle(name, shape, rng).astype(model.dtype)
    mask = model.mask if len(model.mask) else causal_mask(1, config.n_ctx)
    beside = mask[min(at, len(mask) - 1)][None]
    return Transformer(config, weights, np.concatenate([model.mask[:at], beside, model.mask[at:]]))


def _renumbered(name: str, at: int) -> str:
    """The name of a weight where a layer was inserted before its own."""
    return in_layer(name, layer + 1) if is_of_layer(name) and (layer := layer_of(name)) >= at else name


def _idle(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name.endswith(("W_O", "W_out", ".b", "smear")):
        return np.zeros(shape)
    if name.endswith(".w"):  # the scale of a layer norm
        return np.ones(shape)
    return rng.normal(0, shape[-2] ** -0.5, shape)
