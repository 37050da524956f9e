"""Accuracies of models that are known to implement the program, or not to."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.learned import untrained_like
from rasplens.learned.siit.accuracy import ImplementationAccuracy, implementation_accuracy
from rasplens.learned.siit.circuit import Node, circuit_of
from rasplens.model import Transformer
from rasplens.model.twins import insert_idle_heads


@pytest.fixture(scope="module")
def exact(task, compiled):
    """The compiled model itself, with a logit for each of the task's answers, and idle heads beside its own."""
    model, missing = compiled.transformer, len(task.outputs) - compiled.transformer.config.d_vocab_out
    assert (compiled.offset, missing) == (0, 1)
    unembedding = np.pad(model.W_U, ((0, 0), (0, missing)))
    config = replace(model.config, d_vocab_out=len(task.outputs))
    wide = Transformer(config, {**model.weights, "unembed.W_U": unembedding}, model.mask)
    return insert_idle_heads(wide, 1, 0)


def test_the_compiled_model_implements_itself(task, compiled, exact):
    found = implementation_accuracy(compiled, exact, circuit_of(compiled), task)
    assert found.least == {"behaviour": 1.0, "interchange": 1.0, "changed": 1.0, "strict": 1.0}
    assert set(found.interchange) == {"L0H0", "L0 MLP", "L1H0"}
    assert found.strict


def test_a_node_that_is_something_else_fails(task, compiled, exact):
    """With nodes called by wrong names, answers change where none should, and not where they should."""
    circuit = circuit_of(compiled)
    wrong = {Node(0, 1): circuit[Node(0, 0)], **{node: part for node, part in circuit.items() if node.layer != 0}}
    found = implementation_accuracy(compiled, exact, wrong, task)
    assert found.changed["L0H1"] < 0.1
    assert found.strict["L0H0"] < 0.9
    assert found.behaviour == 1.0


def test_an_untrained_model_implements_nothing(task, compiled, exact):
    random = untrained_like(exact.config, exact.mask, 0)
    found = implementation_accuracy(compiled, random, circuit_of(compiled), task).least
    assert found["behaviour"] < 0.8
    assert found["changed"] < 0.7


def test_nodes_without_a_share_are_left_out_of_the_least():
    found = ImplementationAccuracy(0.9, {"L0H0": 1.0, "L1H0": 0.8}, {"L0H0": float("nan"), "L1H0": 0.7}, {})
    assert found.least == {"behaviour": 0.9, "interchange": 0.8, "changed": 0.7, "strict": 1.0}
    assert str(found) == "behaviour 0.9000, interchange 0.8000, changed 0.7000, strict 1.0000"
