"""Small pairs of models whose comparison is known: a compiled model against itself and against noise.

The comparisons that many tests only look at are made once a session.
"""

from dataclasses import replace

import pytest

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
    """As little of everything as the small models need."""
    return CompareConfig(
        n_inputs=96,
        n_fitting=300,
        relevance_inputs=24,
        questions=100,
        questions_tried=1_000,
        interchange_pairs=50,
        das_steps=10,
        random_subspaces=3,
        head_answers=360,
        edge_answers=180,
        profile_permutations=199,
        bootstrap_draws=200,
        similarity_rows=200,
    )


@pytest.fixture(scope="session")
def brief(quick):
    """Less than that, where the scores do not matter."""
    return replace(
        quick,
        n_inputs=40,
        n_fitting=100,
        questions=40,
        questions_tried=160,
        interchange_pairs=20,
        das_steps=1,
        random_subspaces=1,
        head_answers=60,
        edge_answers=60,
        attention_permutations=3,
        profile_permutations=19,
        bootstrap_draws=50,
        similarity_rows=40,
    )


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
