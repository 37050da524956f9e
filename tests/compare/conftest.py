"""Small pairs of models whose comparison is known: a compiled model against itself and against noise."""

import pytest

from rasplens.compare import CompareConfig, pair
from rasplens.compile import compile_program
from rasplens.learned import Architecture, untrained
from rasplens.tasks import get_task


@pytest.fixture(scope="session")
def task():
    return get_task("copy", n_letters=8, block=3, length=9)


@pytest.fixture(scope="session")
def offset(task):
    return compile_program(task.programs["offset"], task.vocab, task.n_ctx, mask=task.visible)


@pytest.fixture(scope="session")
def induction(task):
    return compile_program(task.programs["induction"], task.vocab, task.n_ctx, mask=task.visible)


@pytest.fixture(scope="session")
def noise(task):
    """A model that has learned nothing."""
    return untrained(Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6), task, seed=7)


@pytest.fixture(scope="session")
def with_itself(induction, task):
    return pair(induction, induction, task, config=CompareConfig(n_inputs=300), seed=0)


@pytest.fixture(scope="session")
def with_noise(induction, noise, task):
    return pair(induction, noise, task, config=CompareConfig(n_inputs=300), seed=0)
