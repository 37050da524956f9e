"""Fixtures shared by the whole suite."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest

from rasplens.model import Config, Transformer, bias_shapes, causal_mask, weight_shapes

TransformerFactory = Callable[..., Transformer]


MOST_WORKERS = 4

ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""What every worker is told before it imports anything: it has one core. XLA keeps its threads: how many there
are changes the last bits of a training, and with them what slow tests measure."""

QUICK_TO_COMPILE = {"XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"}
"""For the fast suite besides: its trainings are shorter than XLA takes to make them fast."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Workers for the whole suite, one a core; none for chosen files, which are done before workers are up."""
    chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    workers = 0 if chosen else min(MOST_WORKERS, len(os.sched_getaffinity(0)))
    if workers:
        is_fast = config.option.markexpr not in ("slow", "release")
        settings = ONE_CORE | QUICK_TO_COMPILE if is_fast else ONE_CORE
        os.environ.update({name: os.environ.get(name, value) for name, value in settings.items()})
    return workers


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """What JAX compiles is compiled once for the whole session: most of the time of trainings goes there."""
    workers_share = tmp_path_factory.getbasetemp().parent if os.environ.get("PYTEST_XDIST_WORKER") else None
    cache = tmp_path_factory.mktemp("jax") if workers_share is None else workers_share / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    yield
    jax.config.update("jax_compilation_cache_dir", None)


def pytest_collection_finish():
    """What is there before the first test stays: collecting garbage need not look at it again and again."""
    gc.collect()
    gc.freeze()


MOST_MEMORY, MORE_MEMORY = 1.4 * 2**30, 0.2 * 2**30
"""Bytes that a worker keeps from one file of tests to the next; those it takes before it forgets again."""


@pytest.fixture(scope="session")
def memory_left() -> dict[str, float]:
    """The bytes that were left when memory was last freed."""
    return {"bytes": MOST_MEMORY - MORE_MEMORY}


@pytest.fixture(scope="module", autouse=True)
def forgotten_memory(memory_left):
    """What JAX has compiled is forgotten behind a file of tests, once it takes up much."""
    yield
    if resident_memory() > memory_left["bytes"] + MORE_MEMORY:
        jax.clear_caches()
        gc.collect()
        memory_left["bytes"] = max(resident_memory(), MOST_MEMORY - MORE_MEMORY)


def resident_memory() -> int:
    """Return the bytes that this process has in memory; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


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


@pytest.fixture
def unchecked():
    """Calls as scripts make them: without the annotations that only pytest checks."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
