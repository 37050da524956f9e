import re

import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.compare.discovery.problem import Protocol, discovery_problem
from rasplens.compare.models.vocabulary import vocabulary_of
from rasplens.compile import programs
from rasplens.compile.rasp import tokens
from rasplens.errors import RaspLensError
from rasplens.tasks import compile_for, task_from_program


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ablation": "none"}, "ablation of a Protocol is one of zero, mean, resample; got 'none'"),
        ({"metric": "accuracy"}, "metric of a Protocol is one of kl, loss, logit_difference, l2; got 'accuracy'"),
        ({"corruption": "names"}, "corruption of a Protocol is one of task, one_token; got 'names'"),
        ({"unscored": "first"}, 'unscored of a Protocol is "last" or "out"; got \'first\''),
        ({"n_pairs": 1}, "at least 2 pairs; got 1"),
    ],
)
def test_protocols_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(RaspLensError, match=re.escape(message)):
        Protocol(**fields)


@pytest.mark.parametrize("metric", ["kl", "loss", "logit_difference", "l2"])
def test_damage_is_least_without_a_patch_where_it_is_measured_from_the_model(case, metric):
    asked = case.problem(Protocol(metric=metric, n_pairs=16))
    none = float(asked.damage(asked.matrix(np.zeros(len(asked.graph.edges)))))
    everything = float(asked.damage(asked.matrix(np.ones(len(asked.graph.edges)))))
    assert everything > none
    assert metric not in ("kl", "l2") or none == pytest.approx(0, abs=1e-6)


def test_metrics_by_hand(case):
    asked = case.problem(Protocol(metric="loss", n_pairs=4))
    logits = jnp.asarray(case.transformer(asked.tokens))
    read = np.asarray(logits)[:, list(asked.places)]
    right = np.take_along_axis(read, asked.right[..., None], axis=-1)[..., 0]
    expected = (np.log(np.exp(read).sum(axis=-1)) - right).mean(axis=1)
    np.testing.assert_allclose(asked.damages_of(logits[:, list(asked.places)]), expected, atol=1e-5)


@pytest.mark.parametrize("ablation", ["zero", "mean", "resample"])
def test_what_an_ablated_edge_carries(case, ablation):
    asked = case.problem(Protocol(ablation=ablation, n_pairs=6))
    embedded = case.transformer.W_E[asked.tokens]
    expected = {"zero": 0 * embedded, "mean": embedded.mean(axis=0)[None] + 0 * embedded}
    expected["resample"] = case.transformer.W_E[asked.others]
    np.testing.assert_allclose(asked.instead[0], expected[ablation], atol=1e-6)


def test_one_token_changes(case, task):
    asked = case.problem(Protocol(corruption="one_token", n_pairs=32))
    assert set((asked.tokens != asked.others).sum(axis=1)) <= {0, 1}
    assert (asked.tokens != asked.others).any()


def test_a_model_that_answers_with_numbers_is_measured_by_l2():
    program = programs.frac_prevs((tokens == "x").named("is_x"))
    task = task_from_program(program, "abx", 5, causal=True)
    compiled = compile_for(task)
    own = vocabulary_of(compiled, task)
    assert own.columns is None
    assert discovery_problem(compiled, task, vocabulary=own).protocol.metric == "l2"
    with pytest.raises(RaspLensError, match="needs a logit for each answer; this model answers with numbers"):
        discovery_problem(compiled, task, Protocol(metric="loss"), own)
