"""What training compiles is compiled once for the whole session: most of the time of these tests goes there."""

import os

import jax
import pytest


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    workers_share = tmp_path_factory.getbasetemp().parent if os.environ.get("PYTEST_XDIST_WORKER") else None
    cache = tmp_path_factory.mktemp("jax") if workers_share is None else workers_share / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    yield
    jax.config.update("jax_compilation_cache_dir", None)
