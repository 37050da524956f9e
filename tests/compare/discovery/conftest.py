"""A compiled model of two layers, its task, and a small model of random weights."""

import pytest

from rasplens.compare.discovery.cases import compiled_case
from rasplens.compile import programs
from rasplens.learned import untrained_like
from rasplens.model import Config, causal_mask
from rasplens.tasks import compile_for, task_from_program


@pytest.fixture(scope="package")
def task():
    return task_from_program(programs.induction(), "abc", 5, causal=True)


@pytest.fixture(scope="package")
def compiled(task):
    return compile_for(task)


@pytest.fixture(scope="package")
def case(compiled, task):
    return compiled_case(compiled, task)


@pytest.fixture(scope="package")
def random_model(task):
    """Two layers with MLPs, in which everything matters."""
    config = Config(
        n_layers=2, n_heads=2, d_model=12, d_head=6, n_ctx=5, d_vocab=3, d_vocab_out=task.n_logits, d_mlp=16,
        activation="gelu",
    )  # fmt: skip
    return untrained_like(config, causal_mask(2, 5), 0)
