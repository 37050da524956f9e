"""A task with letters that are asked in any order: of its program all claims on a part can be tested."""

import pytest

from rasplens.compile import compile_program
from rasplens.tasks import get_task


@pytest.fixture(scope="session")
def mixed_task():
    return get_task("induction", n_letters=8, block=5, asked=3)


@pytest.fixture(scope="session")
def mixed_induction(mixed_task):
    program = mixed_task.programs["induction"]
    return compile_program(program, mixed_task.vocab, mixed_task.n_ctx, mask=mixed_task.visible)
