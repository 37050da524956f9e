"""Fixtures shared by the whole suite."""

import os
from collections.abc import Callable

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy, torch and JAX are imported: a worker has one core
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

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
