"""Fixtures shared by the whole suite."""

from collections.abc import Callable

import numpy as np
import pytest

from rasplens.model import Config, Transformer, bias_shapes, causal_mask, weight_shapes

TransformerFactory = Callable[..., Transformer]


@pytest.fixture(scope="session")
def random_transformer() -> TransformerFactory:
    """Builds a transformer with random weights: `(config, mask=causal, biases=False, dtype, seed)`."""

    def build(config: Config, mask=None, biases=False, dtype=np.float64, seed=0) -> Transformer:
        rng = np.random.default_rng(seed)
        shapes = weight_shapes(config) | (bias_shapes(config) if biases else {})
        weights = {name: rng.normal(0, 0.5, shape).astype(dtype) for name, shape in shapes.items()}
        for name in config.frozen:
            weights[name][:] = np.eye(*weights[name].shape[1:])
        return Transformer(config, weights, causal_mask(config.n_layers, config.n_ctx) if mask is None else mask)

    return build
