"""Untrained models: where training starts, and the floor that comparisons measure against."""

import numpy as np

from rasplens.learned.recipes import Architecture
from rasplens.model import Config, Transformer, weight_shapes
from rasplens.tasks import Task

INIT_SCALE = 0.8
"""Weights are normal with standard deviation INIT_SCALE / √d_model.

Source: HookedTransformer's default (`initializer_range`), with which the seeds trained; other libraries
use 0.02, which trains these models differently.
"""


def untrained(architecture: Architecture, task: Task, seed: int) -> Transformer:
    """A randomly initialised model of an architecture for a task."""
    return untrained_like(architecture.config(task), task.mask(architecture.n_layers), seed)


def untrained_like(config: Config, mask: np.ndarray, seed: int) -> Transformer:
    """A randomly initialised model of a config: no biases, keys smeared half and half."""
    rng = np.random.default_rng(seed)
    scale = INIT_SCALE / np.sqrt(config.d_model)
    weights = {
        name: rng.normal(0, scale, shape).astype(np.float32) for name, shape in weight_shapes(config).items()
    }
    for layer in range(config.n_layers):
        attn = f"blocks.{layer}.attn."
        if config.smeared_keys:
            weights[f"{attn}smear"][:] = 0
        if config.identity_ov:
            weights[f"{attn}W_V"][:] = np.eye(config.d_model, config.d_head)
            weights[f"{attn}W_O"][:] = np.eye(config.d_head, config.d_model)
    return Transformer(config, weights, mask)
