"""EAP-GP: gradients on the path of steepest descent between two inputs."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare.discovery.cases import compiled_case
from rasplens.compare.discovery.methods.catalogue import METHODS
from rasplens.compare.discovery.methods.grad_path import path
from rasplens.compare.discovery.protocol import Protocol, Setting
from rasplens.compare.discovery.scoreboard import board
from rasplens.compile import programs
from rasplens.model.forward import ForwardPass
from rasplens.tasks import compile_for, task_from_program


@pytest.fixture(scope="module")
def case():
    task = task_from_program(programs.histogram(), "abc", 5)
    return compiled_case(compile_for(task), task)


def distance(problem, embedded):
    """Of the logits from those of the other input, by the model's own forward pass from the stream on."""
    model = problem.transformer.astype(np.float64)
    _, cache = model.run_with_cache(np.asarray(problem.tokens))
    stream = np.asarray(embedded) + cache["blocks.0.hook_resid_pre"] - cache["hook_embed"]
    logits = ForwardPass(model.weights, model.mask, model.config).logits_from(0, stream)
    return ((logits - model(np.asarray(problem.others))) ** 2).sum(axis=(1, 2))


def test_each_step_has_unit_length_down_the_distance(case):
    """Its direction is held against differences of the model's own logits."""
    problem = case.problem(Protocol(n_pairs=6, points=3))
    start = np.asarray(problem.clean[1][problem.graph.senders.index("embed")], dtype=np.float64)
    points = [start, *(np.asarray(point, dtype=np.float64) for point in path(problem))]
    assert len(points) == 4
    moves = np.diff(points, axis=0)
    moved = np.linalg.norm(moves.reshape(3, 6, -1), axis=-1)
    differs = (np.asarray(problem.tokens) != np.asarray(problem.others)).any(axis=1)
    np.testing.assert_allclose(moved[0, differs], 1.0, atol=1e-6)
    rng, tiny, lengths = np.random.default_rng(0), 1e-4, []
    for _ in range(4):
        along = rng.normal(size=start.shape)
        slope = (distance(problem, start + tiny * along) - distance(problem, start - tiny * along)) / (2 * tiny)
        down = (moves[0] * along).sum(axis=(1, 2))
        lengths.append(-slope[differs] / down[differs])  # the gradient's, the same along every direction
    assert np.min(lengths) > 0
    np.testing.assert_allclose(lengths, lengths[:1] * 4, rtol=1e-2)
    assert (distance(problem, start + tiny * moves[0]) < distance(problem, start))[differs].all()


def test_where_both_inputs_are_the_same_no_step_is_taken(case):
    problem = case.problem(Protocol(n_pairs=4, points=2))
    same = replace(problem, instead=problem.clean[1])
    start = problem.clean[1][problem.graph.senders.index("embed")]
    for point in path(same):
        np.testing.assert_array_equal(point, start)
    assert np.isfinite(METHODS["eap-gp"](same)).all()


def test_with_few_points_it_finds_what_the_straight_way_misses(case):
    """Attention of a compiled model is nearly hard: five points between two inputs seldom hit where it changes."""
    methods = {name: METHODS[name] for name in ("eap-gp", "eap-ig-inputs", "exact")}
    with pytest.warns(UserWarning, match="eap-ig-inputs"):
        found = board([case], methods, {"few": Setting(Protocol(points=5))}).set_index("method")["auroc"]
    assert found["eap-gp"] == found["exact"] == 1.0
    assert found["eap-ig-inputs"] < 0.9
