"""A program of two heads and an MLP, and its task."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compile import rasp
from rasplens.learned import ordinary_architecture
from rasplens.learned.siit.circuit import circuit_of, nodes_of
from rasplens.model import Transformer
from rasplens.model.twins import insert_idle_heads
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


@pytest.fixture(scope="package")
def exact(task, compiled):
    """The compiled model itself, with a logit for each of the task's answers, and idle heads beside its own."""
    model, missing = compiled.transformer, len(task.outputs) - compiled.transformer.config.d_vocab_out
    assert (compiled.offset, missing) == (0, 1)
    unembedding = np.pad(model.W_U, ((0, 0), (0, missing)))
    config = replace(model.config, d_vocab_out=len(task.outputs))
    wide = Transformer(config, {**model.weights, "unembed.W_U": unembedding}, model.mask)
    return insert_idle_heads(wide, 1, 0)


@pytest.fixture(scope="package")
def parts(compiled):
    return tuple(circuit_of(compiled).values())


@pytest.fixture(scope="package")
def nodes(compiled):
    return tuple(nodes_of(ordinary_architecture(compiled)))
