"""Accuracies of models that are known to implement the program, or not to."""

from dataclasses import replace

import numpy as np

from rasplens.compile import programs
from rasplens.learned import untrained_like
from rasplens.learned.siit.accuracy import ImplementationAccuracy, implementation_accuracy
from rasplens.learned.siit.circuit import Node, circuit_of
from rasplens.tasks import compile_for, task_from_program


def test_the_compiled_model_implements_itself(task, compiled, exact):
    found = implementation_accuracy(compiled, exact, circuit_of(compiled), task)
    assert found.least == dict.fromkeys(["behaviour", "interchange", "strict", "changed", "within"], 1.0)
    assert set(found.interchange) == {"L0H0", "L0 MLP", "L1H0"}
    assert found.strict


def test_answers_that_the_task_does_not_ask_for_count_nowhere(task, compiled, exact):
    """Of a model that is right, and of one that is right only where it is asked."""
    some = replace(task, asked=lambda ids: np.tile([True, False] * 3, (len(ids), 1)))
    found = implementation_accuracy(compiled, exact, circuit_of(compiled), some)
    assert set(found.least.values()) == {1.0}
    answers = task.target(task.held_out)
    wrong = replace(task, target=lambda ids: np.where([True, False] * 3, task.target(ids), answers.max() - 1))
    circuit = circuit_of(compiled)
    assert implementation_accuracy(compiled, exact, circuit, wrong).behaviour < 1.0
    assert implementation_accuracy(compiled, exact, circuit, replace(wrong, asked=some.asked)) == found


def test_a_node_that_is_something_else_fails(task, compiled, exact):
    """With nodes called by wrong names, answers change where none should, and not where they should."""
    circuit = circuit_of(compiled)
    wrong = {Node(0, 1): circuit[Node(0, 0)], **{node: part for node, part in circuit.items() if node.layer != 0}}
    found = implementation_accuracy(compiled, exact, wrong, task)
    assert found.changed["L0H1"] < 0.1
    assert found.strict["L0H0"] < 0.9
    assert found.behaviour == 1.0


def test_what_passes_by_a_node_outside_of_the_circuit_is_not_within(task, compiled, exact):
    """The compiled model's own circuit does it all; without its last head, nothing passes from the first on."""
    circuit = circuit_of(compiled)
    found = implementation_accuracy(compiled, exact, circuit, task).within
    assert set(found) == {str(node) for node in circuit}
    assert set(found.values()) == {1.0}
    without_last = {node: part for node, part in circuit.items() if node != Node(1, 0)}
    lacking = implementation_accuracy(compiled, exact, without_last, task)
    assert lacking.least["changed"] == 1.0
    assert lacking.within["L0H0"] == 0.0


def test_an_untrained_model_implements_nothing(task, compiled, exact):
    random = untrained_like(exact.config, exact.mask, 0)
    found = implementation_accuracy(compiled, random, circuit_of(compiled), task).least
    assert found["behaviour"] < 0.8
    assert found["changed"] < 0.7


def test_nodes_without_a_share_are_left_out_of_the_least():
    some = {"L0H0": float("nan"), "L1H0": 0.7}
    found = ImplementationAccuracy(0.9, {"L0H0": 1.0, "L1H0": 0.8}, {}, some, {"L0H0": float("nan")})
    assert found.least == {"behaviour": 0.9, "interchange": 0.8, "changed": 0.7}
    assert str(found) == "behaviour 0.9000, interchange 0.8000, changed 0.7000; not tested: L0H0"
    assert found.untested == ("L0H0",)


def test_a_node_that_computes_a_constant_is_not_tested():
    """In `reverse` of inputs of one length, nodes compute the length and where to look: the same on all inputs."""
    task = task_from_program(programs.reverse(), "abc", 4)
    compiled = compile_for(task)
    model = compiled.transformer
    found = implementation_accuracy(compiled, model, circuit_of(compiled), task)
    assert 0 < len(found.untested) < len(found.changed)
    assert all(found.interchange[node] == 1.0 for node in found.untested)


def test_a_mark_is_for_the_worst_node_and_for_what_was_measured():
    found = ImplementationAccuracy(0.9, {"L0H0": 1.0, "L1H0": 0.8}, {}, {}, {})
    assert found.reaches({"behaviour": 0.9, "interchange": 0.8, "within": 1.0})
    assert not found.reaches({"behaviour": 0.9, "interchange": 0.9})
