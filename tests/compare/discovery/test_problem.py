from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.compare.discovery.problem import discovery_problem
from rasplens.compare.discovery.protocol import Protocol
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import programs
from rasplens.compile.rasp import tokens
from rasplens.errors import RaspLensError
from rasplens.learned import untrained_like
from rasplens.model import Config, causal_mask
from rasplens.tasks import compile_for, task_from_program
from rasplens.tasks.task import NOT_ASKED


def test_damage_is_in_float64_also_where_jax_is_not(case):
    asked = case.problem(Protocol(n_pairs=4))
    assert asked.damages(np.eye(len(asked.graph.edges), dtype=np.float32)).dtype == np.float64
    assert {part.dtype for part in (*asked.clean, asked.instead)} == {np.dtype("float64")}
    assert jnp.asarray(1.5).dtype == np.float32


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
    loss = np.log(np.exp(read).sum(axis=-1)) - right
    expected = np.ma.masked_array(loss, ~asked.counts).mean(axis=1)
    np.testing.assert_allclose(asked.damages_of(logits[:, list(asked.places)]), expected, atol=1e-5)
    summed = case.problem(Protocol(metric="loss", n_pairs=4, answers="sum"))
    assert (asked.counts.sum(axis=1) > 1).all()
    found = summed.damages_of(logits[:, list(asked.places)])
    np.testing.assert_allclose(found, expected * asked.counts.sum(axis=1), rtol=1e-5)


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


@pytest.mark.parametrize("metric", ["kl", "loss", "logit_difference", "l2"])
def test_what_the_task_does_not_ask_does_not_count(case, task, metric):
    """Logits of answers that are not asked may be anything, and their codes are no columns."""
    partly = replace(
        task,
        asked=lambda ids: np.arange(task.n_ctx) % 2 == np.zeros((len(ids), 1)),
        target=lambda ids: np.where(np.arange(task.n_ctx) % 2 == 0, task.target(ids), NOT_ASKED),
    )
    asked = discovery_problem(case, partly, Protocol(metric=metric, n_pairs=8), case.vocabulary)
    read = np.array(asked.clean[0])[:, list(asked.places)] + 0.1 * np.arange(3)
    other = read.copy()
    other[:, 1::2] = 7.0
    damages = asked.damages_of(jnp.asarray(read))
    np.testing.assert_allclose(damages, asked.damages_of(jnp.asarray(other)), atol=1e-6)
    other[:, ::2] *= 2
    assert np.abs(damages - asked.damages_of(jnp.asarray(other))).max() > 1e-3


def test_answers_without_a_logit_count_for_no_metric_that_needs_one(case, task):
    """A compiled model says None by no logit at all: it must not be taken for the last one."""
    asked = case.problem(Protocol(n_pairs=32, metric="loss"))
    undefined = task.outputs.index(None)
    assert case.vocabulary.columns[undefined] == -1
    none = asked.right < 0
    assert none.any()
    assert not asked.counts[none].any()
    assert asked.counts.any(axis=1).all()
    read = np.array(asked.clean[0])[:, list(asked.places)]
    other = np.where(none[..., None], 9.0, read)
    np.testing.assert_allclose(asked.damages_of(jnp.asarray(other)), asked.damages_of(jnp.asarray(read)))
    assert case.problem(Protocol(n_pairs=32)).counts.all()


def test_without_any_answer_that_counts_there_is_no_problem(case, task):
    nothing = replace(task, asked=lambda ids: np.zeros((len(ids), task.n_ctx), dtype=bool))
    with pytest.raises(RaspLensError, match=rf"held-out.*{task.name!r}.*logit"):
        discovery_problem(case, nothing, Protocol(n_pairs=8), case.vocabulary)


def test_a_model_that_answers_with_numbers_is_measured_by_l2():
    program = programs.frac_prevs((tokens == "x").named("is_x"))
    task = task_from_program(program, "abx", 5, causal=True)
    compiled = compile_for(task)
    own = vocabulary_of(compiled, task)
    assert own.columns is None
    assert discovery_problem(compiled, task, vocabulary=own).protocol.metric == "l2"
    with pytest.raises(RaspLensError, match=r"'loss'.*logit.*numbers"):
        discovery_problem(compiled, task, Protocol(metric="loss"), own)


def test_a_model_without_layers_has_no_circuit(case):
    config = Config(n_layers=0, n_heads=1, d_model=4, d_head=4, n_ctx=5, d_vocab=3, d_vocab_out=case.task.n_logits)
    with pytest.raises(RaspLensError, match=r"without layers.*circuit"):
        discovery_problem(untrained_like(config, causal_mask(0, 5), 0), case.task)
