"""Models behind a BOS, the readout of variables, and how many cycles there are."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.compare import as_studied_model
from rasplens.compile import programs
from rasplens.errors import RaspLensError
from rasplens.learned import (
    SIITRecipe,
    TrainConfig,
    import_checkpoint,
    load_learned,
    ordinary_architecture,
    train_to_implement,
)
from rasplens.learned.siit import interventions
from rasplens.learned.siit.circuit import Node, circuit_of, nodes_of
from rasplens.learned.siit.interventions import NodeInterchange, oracle, runner, variables
from rasplens.learned.siit.losses import SIITTarget, inputs_of, losses, readout
from rasplens.learned.siit.training import SIITTraining, untrained_behind_bos
from rasplens.model import StorageError, Transformer
from rasplens.tasks import compile_for, task_from_program

SHORT = SIITRecipe(steps=4, cycles=3, batch_size=8, warmup=1, pool=60)


@pytest.fixture(scope="module")
def counting():
    task = task_from_program(programs.histogram(), "ab", 5)
    return task, compile_for(task)


@pytest.mark.slow
@pytest.mark.parametrize(("enough", "seen"), [(0.0, [4]), (1.0, [4, 12, 28])])
def test_cycles_go_on_until_it_is_enough_each_twice_as_long_as_the_last(task, compiled, enough, seen):
    shape = ordinary_architecture(compiled, d_model=16)
    recipe = SIITRecipe(steps=4, cycles=3, batch_size=8, warmup=1, pool=60, enough=enough)
    reported = []
    model = train_to_implement(compiled, task, shape, recipe, progress=lambda now: reported.append(now.step))
    assert reported == seen
    assert model.provenance["steps"] == seen[-1]


@pytest.mark.parametrize(("both", "expected"), [(0.0, True), (0.5, False)])
def test_with_both_what_the_circuit_does_alone_has_to_be_enough(task, compiled, exact, both, expected):
    """Nothing of the compiled model gets from its first head to the answers but through its last one."""
    circuit = {node: part for node, part in circuit_of(compiled).items() if node != Node(1, 0)}
    weights = {name: jnp.asarray(array) for name, array in exact.weights.items()}
    job = SIITTraining(exact, compiled, circuit, task, replace(SHORT, both=both, enough=0.3), 0)
    assert job._is_enough(weights) == expected


@pytest.mark.parametrize("of", ["start", "compiled"])
def test_models_that_differ_in_no_weight_are_told_apart(task, compiled, exact, of):
    """By what their neurons do, what scores are divided by, and who sees whom."""
    job = SIITTraining(exact, compiled, circuit_of(compiled), task, SHORT, 0)
    model = exact if of == "start" else compiled.transformer
    others = [
        Transformer(replace(model.config, activation="gelu"), model.weights, model.mask),
        Transformer(replace(model.config, attn_scale=3.0), model.weights, model.mask),
        Transformer(model.config, model.weights, np.ones_like(model.mask)),
    ]
    for other in others:
        given = {"start": other} if of == "start" else {"compiled": replace(compiled, transformer=other)}
        assert replace(job, **given).identity != job.identity
    again = Transformer(model.config, dict(model.weights), model.mask.copy())
    given = {"start": again} if of == "start" else {"compiled": replace(compiled, transformer=again)}
    assert replace(job, **given).identity == job.identity


class KilledError(Exception):
    pass


@pytest.mark.parametrize(  # within the first cycle, at its end, within the second
    "chunks",
    [pytest.param(1, marks=pytest.mark.slow), *(pytest.param(n, marks=pytest.mark.release) for n in (3, 4))],
)
def test_a_training_that_was_killed_goes_on_to_the_same_weights(task, compiled, tmp_path, monkeypatch, chunks):
    from rasplens.learned.siit import training

    monkeypatch.setattr(training, "CHUNK", 2)
    shape, recipe = ordinary_architecture(compiled, d_model=16), replace(SHORT, steps=6, cycles=2, enough=1.0)
    always = TrainConfig(save_every=0.0)
    reports, state = [], tmp_path / "state.safetensors"

    def killed(now):
        reports.append(now)
        if len(reports) > chunks:
            raise KilledError

    whole = train_to_implement(compiled, task, shape, recipe)
    with pytest.raises(KilledError):
        train_to_implement(compiled, task, shape, recipe, config=always, progress=killed, state_path=state)
    steps = []
    rest = train_to_implement(
        compiled, task, shape, recipe, config=always, progress=lambda now: steps.append(now.step), state_path=state
    )
    assert (steps[0], steps[-1], rest.provenance["steps"]) == (2 * (chunks + 1), 18, 18)
    for name, array in whole.transformer.weights.items():
        np.testing.assert_array_equal(rest.transformer.weights[name], array)
    with pytest.raises(StorageError, match="seed was 0, now 1"):
        train_to_implement(compiled, task, shape, recipe, 1, state_path=state)


@pytest.mark.slow
def test_a_program_with_a_bos_has_a_model_that_reads_one(counting, tmp_path):
    task, compiled = counting
    assert compiled.has_bos
    model = train_to_implement(compiled, task, ordinary_architecture(compiled, d_model=16), SHORT)
    assert model.prefix == (2,)
    assert (model.transformer.config.d_vocab, model.transformer.config.n_ctx) == (3, 6)
    model.save(tmp_path / "model.safetensors")
    for one in (model, load_learned(tmp_path / "model.safetensors")):
        studied = as_studied_model(one, task, task.held_out[:3])
        assert (studied.tokens[:, 0] == 2).all()
        assert studied.answer_places == [1, 2, 3, 4, 5]
        expected = model.transformer(compiled.with_bos(task.held_out[:3]))[:, 1:]
        np.testing.assert_allclose(studied.clean_logits, expected, atol=1e-5)
        assert task.accuracy(one).token == pytest.approx(model.accuracy.behaviour)
    assert import_checkpoint(tmp_path / "model.safetensors", task).prefix == (2,)
    other = task_from_program(programs.histogram(), "abc", 5)
    with pytest.raises(RaspLensError, match=r"3 tokens \(d_vocab\) where it needs 4"):
        import_checkpoint(tmp_path / "model.safetensors", other)


def test_without_a_bos_it_reads_the_task_s_own_tokens(task, compiled):
    assert not compiled.has_bos
    model = untrained_behind_bos(ordinary_architecture(compiled), compiled, task, 0)
    assert (model.config.d_vocab, model.config.n_ctx) == (len(task.vocab), task.n_ctx)


@pytest.mark.slow
def test_nothing_is_taken_at_the_bos(counting):
    task, compiled = counting
    model = untrained_behind_bos(ordinary_architecture(compiled, d_model=16), compiled, task, 0)
    nodes = nodes_of(model.config)
    run = runner(model, nodes, compiled.offset)
    ids = jnp.asarray(task.held_out[:2])
    weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
    logits, given = run(weights, ids)
    assert logits.shape[:2] == ids.shape
    assert all(value.shape[1] == ids.shape[1] for value in given.values())
    np.testing.assert_allclose(logits, model(compiled.with_bos(np.asarray(ids)))[:, 1:], atol=1e-5)
    swapped = NodeInterchange(
        jnp.ones((len(nodes), *ids.shape), bool), jnp.broadcast_to(jnp.array([1, 0]), (len(nodes), 2))
    )
    patched, _ = run(weights, ids, swapped, given)
    assert np.abs(patched - logits).max() > 1e-4
    own = NodeInterchange(swapped.taken, jnp.broadcast_to(jnp.array([0, 1]), (len(nodes), 2)))
    np.testing.assert_allclose(run(weights, ids, own, given)[0], logits, atol=1e-5)


@pytest.mark.slow
def test_variables_have_mean_zero_and_variance_one_and_what_is_constant_has_none(counting):
    task, compiled = counting
    circuit = circuit_of(compiled)
    found = variables(compiled, circuit, task)(jnp.asarray(task.sample(np.random.default_rng(1), 2_000)))
    for value in found:
        assert value.shape[-1] > 0
        np.testing.assert_allclose(np.asarray(value).mean(axis=(0, 1)), 0, atol=0.1)
        np.testing.assert_allclose(np.asarray(value).std(axis=(0, 1)), 1, atol=0.1)
    length = task_from_program(programs.length(), "ab", 5)
    fixed = compile_for(length)
    assert {
        value.shape[-1] for value in variables(fixed, circuit_of(fixed), length)(jnp.asarray(length.held_out[:2]))
    } == {0}


@pytest.mark.slow
def test_each_value_has_a_direction_beside_the_code_and_the_rarest_have_none(counting, monkeypatch):
    """As many patterns of what is told as the compiled model's part has different vectors."""
    task, compiled = counting
    circuit, ids = circuit_of(compiled), jnp.asarray(task.sample(np.random.default_rng(1), 500))
    node, part = next((node, part) for node, part in circuit.items() if node.is_head)

    def head_gives():
        run = runner(compiled.transformer, [part], compiled.offset)
        _, given = run({name: jnp.asarray(array) for name, array in compiled.transformer.weights.items()}, ids)
        return np.asarray(given[node.point][:, :, list(part.heads)]).reshape(ids.size, -1)

    code = head_gives()
    distinct = np.unique(code.round(3), axis=0)
    n_code = int((code.std(axis=0) > 1e-4).sum())
    told = np.asarray(variables(compiled, circuit, task)(ids)[0]).reshape(ids.size, -1)
    assert told.shape[-1] == n_code + len(distinct)
    of_value = told[:, n_code:] > 0
    np.testing.assert_array_equal(of_value.sum(axis=1), 1)
    _, by_code = np.unique(code.round(3), axis=0, return_inverse=True)
    pairs = set(zip(by_code.ravel().tolist(), of_value.argmax(axis=1).tolist(), strict=True))
    assert len(pairs) == len(distinct)  # one direction a value, one value a direction
    assert len({direction for _, direction in pairs}) == len(distinct)
    monkeypatch.setattr(interventions, "MOST_VALUES", 2)
    told = np.asarray(variables(compiled, circuit, task)(ids)[0]).reshape(ids.size, -1)
    assert told.shape[-1] == n_code + 2
    two = np.argsort(-np.bincount(by_code.ravel()))[:2]
    np.testing.assert_array_equal((told[:, n_code:] > 0).any(axis=1), np.isin(by_code.ravel(), two))


@pytest.mark.slow
def test_the_readout_is_measured_on_each_node_and_is_no_number_for_nothing(counting):
    """Zero weights leave all of the variance; a variable that is the same everywhere leaves none."""
    for task, expected in ((counting[0], 1.0), (task_from_program(programs.length(), "ab", 5), 0.0)):
        compiled = compile_for(task)
        circuit, shape = circuit_of(compiled), ordinary_architecture(compiled, d_model=16)
        model = untrained_behind_bos(shape, compiled, task, 0)
        nodes = nodes_of(shape)
        run = runner(model, nodes, compiled.offset)
        wanted = variables(compiled, circuit, task)
        weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
        for node, value in zip(circuit, wanted(jnp.asarray(task.held_out[:1])), strict=True):
            width = shape.d_head if node.is_head else shape.d_model
            weights[readout(node)] = jnp.zeros((width, value.shape[-1]))
            weights[readout(node, "b")] = jnp.zeros(value.shape[-1])
        all_losses = losses(run, nodes, SIITTarget(circuit, oracle(compiled, circuit, task), wanted), task)
        found = all_losses(weights, inputs_of(task, task.held_out), jax.random.key(0))
        assert float(found["readout"]) == pytest.approx(expected, abs=0.2)
        assert all(np.isfinite(float(value)) for value in found.values())
