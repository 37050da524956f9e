"""A program of two heads and an MLP, and its task."""

import pytest

from rasplens.compile import rasp
from rasplens.tasks import compile_for, task_from_program


@pytest.fixture(scope="package")
def task():
    back = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == max(query - 1, 0))
    previous = rasp.Aggregate(back, rasp.tokens).named("previous")
    is_same = rasp.SequenceMap(lambda one, other: one == other, rasp.tokens, previous).named("is_same")
    again = rasp.Aggregate(back, is_same).named("again")
    return task_from_program(again, "abc", 6, causal=True)


@pytest.fixture(scope="package")
def compiled(task):
    return compile_for(task)
