"""Small pairs of models whose comparison is known: a compiled model against itself and against noise.

The comparisons that many tests only look at are made once a session.
"""

from dataclasses import replace

import pytest
from small_configs import BRIEF, QUICK

from rasplens.compare import CompareConfig, compare, study_of
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
    return study_of(induction, induction, task, config=CompareConfig(n_inputs=300, n_fitting=800), seed=0)


@pytest.fixture(scope="session")
def with_noise(induction, noise, task):
    return study_of(induction, noise, task, config=CompareConfig(n_inputs=300, n_fitting=800), seed=0)


@pytest.fixture(scope="session")
def quick():
    return QUICK


@pytest.fixture(scope="session")
def brief():
    return BRIEF


@pytest.fixture(scope="session")
def ceiling(induction, task, quick):
    """The induction program against itself."""
    return compare(induction, induction, task=task, config=quick)


@pytest.fixture(scope="session")
def floor(induction, noise, task, quick):
    """The induction program against noise."""
    return compare(induction, noise, task=task, config=quick)


@pytest.fixture(scope="session")
def one_head(offset, noise, task, quick):
    """The program of one head, with nothing between input and output, against noise."""
    return compare(offset, noise, task=task, config=quick)


@pytest.fixture(scope="session")
def markup(brief):
    """A comparison on a task whose tokens are markup."""
    tokens = ("<script>alert(1)</script>", "<b>bold</b>", "a & b")
    task = replace(get_task("copy", n_letters=3, block=3, length=9), vocab=tokens, outputs=tokens)
    compiled = compile_program(task.programs["offset"], task.vocab, task.n_ctx, mask=task.visible)
    return compare(compiled, untrained(Architecture(1, 2, 8, 4), task, 0), task=task, config=brief)
