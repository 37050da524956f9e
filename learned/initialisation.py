"""Untrained models: where training starts, and the floor that comparisons measure against."""

import numpy as np

from rasplens.learned.architecture import Architecture
from rasplens.model import Config, Transformer, bias_shapes, weight_shapes
from rasplens.model.random_streams import rng
from rasplens.tasks import Task

INIT_SCALE = 0.8
"""Weights are normal with standard deviation INIT_SCALE / √d_model.

Source: HookedTransformer's default (`initializer_range`), with which the published models were trained; other
libraries use 0.02, which trains these models differently.
"""


def untrained(architecture: Architecture, task: Task, seed: int) -> Transformer:
    """A randomly initialised model of an architecture for a task, with biases of zero if it has any."""
    config = architecture.config(task)
    model = untrained_like(config, task.mask(config.n_layers), seed)
    return with_biases(model) if architecture.bias else model


def with_biases(model: Transformer) -> Transformer:
    """The model with all the biases that it may have, zero."""
    biases = {name: np.zeros(shape, dtype=np.float32) for name, shape in bias_shapes(model.config).items()}
    return Transformer(model.config, {**model.weights, **biases}, model.mask)


def untrained_like(config: Config, mask: np.ndarray, seed: int) -> Transformer:
    """A randomly initialised model of a config: no biases, keys smeared half and half."""
    generator = rng(seed, "initial weights")
    weights = {}
    for name, shape in weight_shapes(config).items():
        drawn = generator.normal(0, INIT_SCALE / np.sqrt(config.d_model), shape)
        weights[name] = _start(config, name, shape, drawn).astype(np.float32)
    return Transformer(config, weights, mask)


def _start(config: Config, name: str, shape: tuple[int, ...], drawn: np.ndarray) -> np.ndarray:
    """What a weight starts as: drawn, but for those that start at a constant."""
    if name in config.frozen:
        return np.broadcast_to(np.eye(shape[1], shape[2]), shape)
    if name.endswith((".smear", ".b")):
        return np.zeros(shape)
    return np.ones(shape) if name.endswith(".w") else drawn
