"""Untrained models: where training starts, and the floor that comparisons measure against."""

import math
from dataclasses import replace

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.learned.architecture import Architecture
from rasplens.model import Config, Transformer, bias_shapes, weight_shapes
from rasplens.model.random_streams import rng
from rasplens.model.storage import machine_memory
from rasplens.tasks import Task

INIT_SCALE = 0.8
"""Weights are normal with standard deviation INIT_SCALE / √d_model.

Source: HookedTransformer's default (`initializer_range`), with which the published models were trained; other
libraries use 0.02, which trains these models differently.
"""


BYTES = 16
"""Bytes for each trained weight: the weight, its gradient and two moments, four bytes each."""


SIZES = "n_layers", "n_heads", "d_model", "d_head", "d_mlp"
"""The sizes of an architecture that the message names."""


def untrained(architecture: Architecture, task: Task, seed: int) -> Transformer:
    """A randomly initialised model of an architecture for a task, with biases of zero if it has any."""
    config = architecture.config(task)
    _check_memory(config)  # before the mask, which has all layers
    model = untrained_like(config, task.mask(config.n_layers), seed)
    return with_biases(model) if architecture.bias else model


def with_biases(model: Transformer) -> Transformer:
    """The model with all the biases that it may have, zero."""
    biases = {name: np.zeros(shape, dtype=np.float32) for name, shape in bias_shapes(model.config).items()}
    return Transformer(model.config, {**model.weights, **biases}, model.mask)


def untrained_like(config: Config, mask: np.ndarray, seed: int) -> Transformer:
    """A randomly initialised model of a config: no biases, keys smeared half and half.

    Raises:
        RaspLensError: If the machine's memory does not hold it.
    """
    _check_memory(config)
    generator = rng(seed, "initial weights")
    weights = {}
    for name, shape in weight_shapes(config).items():
        drawn = generator.normal(0, INIT_SCALE / np.sqrt(config.d_model), shape)
        weights[name] = _start(config, name, shape, drawn).astype(np.float32)
    return Transformer(config, weights, mask)


def _check_memory(config: Config) -> None:
    """Raises if training a model needs more memory than the machine has; nothing is allocated before."""
    none, one = (_n_weights(replace(config, n_layers=n_layers)) for n_layers in (0, 1))
    n_weights = none + config.n_layers * (one - none)
    needed, there = n_weights * BYTES, machine_memory()
    if needed > there:
        sizes = ", ".join(f"{name}={getattr(config, name):,}" for name in SIZES)
        raise RaspLensError(
            f"A model with {sizes} has {n_weights:,} weights: training it takes {needed / 2**30:,.0f} GiB of "
            f"memory, and this machine has {there / 2**30:,.0f} GiB. Make the model smaller."
        )


def _n_weights(config: Config) -> int:
    return sum(math.prod(shape) for shape in weight_shapes(config).values())


def _start(config: Config, name: str, shape: tuple[int, ...], drawn: np.ndarray) -> np.ndarray:
    """Return the initial value of a weight: drawn at random, or a constant."""
    if name in config.frozen:
        return np.broadcast_to(np.eye(shape[1], shape[2]), shape)
    if name.endswith((".smear", ".b")):
        return np.zeros(shape)
    return np.ones(shape) if name.endswith(".w") else drawn
