import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from rasplens.learned import (
    Architecture,
    Recipe,
    TrainConfig,
    get_recipe,
    load_pretrained,
    train,
    train_many,
    untrained,
)
from rasplens.learned.training import trainer as module
from rasplens.learned.training.loop import RunState
from rasplens.learned.training.report import Report
from rasplens.learned.training.trainer import TrainingError
from rasplens.model import StorageError
from rasplens.tasks import get_task

SMALL = Architecture(n_layers=1, n_heads=1, d_model=16, d_head=16)
KEEP_ALL = TrainConfig(save_every=0.0)
RECIPE = Recipe(SMALL, 64, steps=300, learning_rate=1e-2, weight_decay=0.01, warmup=20, clip=1.0, stop_at=2.0)


@pytest.fixture(scope="module")
def task():
    return get_task("sort", n_values=5, length=3)


@pytest.fixture(scope="module")
def trained(task):
    return train(task, RECIPE, seed=0)


def assert_same_weights(first, second):
    for name, array in first.transformer.weights.items():
        np.testing.assert_array_equal(second.transformer.weights[name], array, err_msg=name)


def without_seconds(history):
    return [{key: value for key, value in report.items() if key != "seconds"} for report in history]


def test_training_learns(task, trained):
    history = trained.history
    assert [report["step"] for report in history] == [100, 200, 300]
    assert history[-1]["loss"] < history[0]["loss"] / 2
    assert task.accuracy(trained).token > 0.8
    assert trained.provenance["accuracy"] == task.accuracy(trained)._asdict()
    assert history[-1]["token"] == pytest.approx(task.accuracy(trained).token)
    assert history[-1]["sequence"] == pytest.approx(task.accuracy(trained).sequence)
    assert trained.origin == "trained by a recipe of its own with seed 0"


@pytest.mark.slow
def test_a_command_is_given_only_where_it_would_train_the_same(task, trained):
    assert "command" not in trained.provenance
    small = train(get_task("copy", n_letters=3, block=2, length=6), replace(RECIPE, steps=10, warmup=0))
    assert "command" not in small.provenance


def test_the_same_seed_gives_the_same_model_and_another_another(task, trained):
    assert_same_weights(trained, train(task, RECIPE, seed=0))
    assert not np.array_equal(train(task, RECIPE, seed=1).transformer.W_E, trained.transformer.W_E)


@pytest.mark.slow
def test_an_ensemble_is_what_its_members_are_alone(task, trained):
    """One of them stops earlier than the others."""
    recipe = replace(RECIPE, stop_at=0.98, warmup=0, learning_rate=3e-3)
    together = train_many(task, recipe, (0, 3, 1))
    alone = [train(task, recipe, seed) for seed in (0, 3, 1)]
    assert len({model.provenance["steps"] for model in alone}) > 1
    for one, other in zip(together, alone, strict=True):
        assert without_seconds(one.history) == without_seconds(other.history)
        assert one.provenance["seed"] == other.provenance["seed"]
        assert_same_weights(one, other)


@pytest.mark.slow
def test_what_is_frozen_stays_and_everything_else_moves():
    task = get_task("compression", n_digits=8)
    architecture = Architecture(
        2, 1, 16, 16, identity_v=True, identity_o=True, normalization="LN", bias=True, d_mlp=8
    )
    recipe = Recipe(architecture, batch_size=32, steps=20, learning_rate=1e-3, weight_decay=0.1)
    before = untrained(architecture, task, 0)
    after = train(task, recipe).transformer
    assert set(after.config.frozen) == {f"blocks.{layer}.attn.W_{letter}" for layer in (0, 1) for letter in "VO"}
    moved = {name for name, array in after.weights.items() if not np.array_equal(array, before.weights[name])}
    # A softmax does not change if all its scores move together: key biases have no gradient.
    still = {"blocks.0.attn.b_K", "blocks.1.attn.b_K"}
    assert set(before.weights) - set(after.config.frozen) - moved <= still


def test_training_stops_once_it_is_good_enough_on_inputs_that_are_not_held_out(task):
    model = train(task, replace(RECIPE, stop_at=0.5))
    assert model.provenance["steps"] < RECIPE.steps
    assert [report["training_token"] >= 0.5 for report in model.history] == [False, True][-len(model.history) :]


def test_held_out_inputs_decide_nothing(task, trained):
    """With other held-out inputs to look at, training goes the same way."""
    other = replace(task, held_out=task.held_out[:3])
    assert_same_weights(trained, train(other, RECIPE))


@pytest.mark.slow
def test_progress_is_reported_chunk_by_chunk(task):
    reports = []
    train_many(task, RECIPE, (2, 5), progress=reports.append)
    told = [(report.seed, report.step) for report in reports]
    assert told == [(seed, step) for step in (100, 200, 300) for seed in (2, 5)]
    assert reports[0].seconds < reports[2].seconds


@pytest.mark.slow
def test_a_loss_that_is_no_number_stops_training_with_a_way_out(task):
    with pytest.raises(TrainingError, match=r"loss.* (nan|inf) .*step 100 \(seed 0\).*learning rate"):
        train(task, replace(RECIPE, learning_rate=1e30, warmup=0, clip=0.0))


def test_the_last_good_state_survives_a_loss_that_is_no_number(task, trained, tmp_path, monkeypatch):
    path, calls, build = tmp_path / "state.safetensors", [], module.build_steps

    def poisoned(*arguments):
        steps = build(*arguments)

        def run(*inputs):
            calls.append(inputs)
            state, losses = steps.run(*inputs)
            return state, losses * (np.nan if len(calls) == 2 else 1)

        return replace(steps, run=run)

    with monkeypatch.context() as context:
        context.setattr(module, "build_steps", poisoned)
        with pytest.raises(TrainingError, match="step 200"):
            train(task, RECIPE, config=KEEP_ALL, state_path=path)
    assert_same_weights(train(task, RECIPE, state_path=path), trained)


def test_no_seed_or_the_same_seed_twice_is_refused(task):
    for seeds in ((), (1, 1)):
        with pytest.raises(ValueError, match=re.escape(f"got {seeds}")):
            train_many(task, RECIPE, seeds)


@pytest.mark.slow
def test_smeared_keys_and_sinusoids_can_be_trained():
    task = get_task("copy", n_letters=4, block=2, length=8)
    architecture = Architecture(1, 2, 16, 8, positions="sinusoidal_qk", smeared_keys=True)
    model = train(task, Recipe(architecture, 64, 200, 1e-2, 0.01, warmup=20, clip=1.0))
    assert task.accuracy(model).token > 0.9
    assert model.transformer.weights["blocks.0.attn.smear"].any()


class InterruptedHereError(Exception):
    """Stands for whatever ends a process between two chunks."""


def interrupt_at(step):
    def progress(report):
        if report.step == step:
            raise InterruptedHereError

    return progress


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(0,), (2, 5)])
def test_an_interrupted_training_goes_on_and_ends_bit_by_bit_the_same(task, tmp_path, seeds):
    path = tmp_path / "state.safetensors"
    whole = train_many(task, RECIPE, seeds)
    with pytest.raises(InterruptedHereError):
        train_many(task, RECIPE, seeds, config=KEEP_ALL, state_path=path, progress=interrupt_at(300))
    steps = []
    resumed = train_many(task, RECIPE, seeds, state_path=path, progress=lambda report: steps.append(report.step))
    assert set(steps) == {300}
    for one, other in zip(whole, resumed, strict=True):
        assert_same_weights(one, other)
        assert without_seconds(one.history) == without_seconds(other.history)


def test_a_finished_training_is_not_done_again(task, trained, tmp_path):
    path = tmp_path / "state.safetensors"
    train(task, RECIPE, state_path=path)
    again = train(task, RECIPE, state_path=path, progress=interrupt_at(300))
    assert_same_weights(again, trained)


def test_the_history_is_on_disk_as_it_goes(task, trained, tmp_path):
    path = tmp_path / "state.safetensors"
    with pytest.raises(InterruptedHereError):
        train(task, RECIPE, config=KEEP_ALL, state_path=path, progress=interrupt_at(300))
    history = path.with_suffix(".jsonl")
    assert [json.loads(line)["step"] for line in history.read_text().splitlines()] == [100, 200]
    train(task, RECIPE, state_path=path)
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    assert without_seconds(lines) == without_seconds(trained.history)


def test_a_full_disk_is_one_clear_error_and_the_last_state_survives(task, trained, tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    with pytest.raises(InterruptedHereError):
        train(task, RECIPE, config=KEEP_ALL, state_path=path, progress=interrupt_at(200))

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr("os.fsync", full)
        with pytest.raises(StorageError, match=r"No space left on device.*resume"):
            train(task, RECIPE, state_path=path)
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["state.jsonl", "state.safetensors"]
    assert_same_weights(train(task, RECIPE, state_path=path), trained)


def test_the_state_of_another_training_is_refused_and_said_why(task, tmp_path):
    path = tmp_path / "state.safetensors"
    train(task, RECIPE, state_path=path)
    with pytest.raises(StorageError, match=r"seeds was \[0\], now \[1\]"):
        train(task, RECIPE, seed=1, state_path=path)
    with pytest.raises(StorageError, match=r"task was sort \("):
        train(get_task("sort", n_values=4, length=3), RECIPE, state_path=path)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_damaged_state_is_refused(task, tmp_path, content):
    path = tmp_path / "state.safetensors"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"state\.safetensors .*state of a training.*Delete it"):
        train(task, RECIPE, state_path=path)


KILLED = """
import os, signal, sys
from rasplens.learned import Architecture, Recipe, TrainConfig, train, use_all_cores
from rasplens.tasks import get_task

use_all_cores()
config = TrainConfig(save_every=0.0)
kill_at = int(sys.argv[2])

def progress(report):
    if report.step == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

recipe = Recipe(Architecture(1, 1, 16, 16), 64, 300, 1e-2, 0.01, warmup=20, clip=1.0, stop_at=2.0)
task = get_task("sort", n_values=5, length=3)
model = train(task, recipe, config=config, state_path=sys.argv[1], progress=progress)
model.save(sys.argv[1] + ".model")
"""


@pytest.mark.slow
def test_a_killed_process_started_again_ends_bit_by_bit_as_an_uninterrupted_one(tmp_path):
    """SIGKILL twice, on two devices; a process of its own each time."""

    def start(name, kill_at):
        command = [sys.executable, "-c", KILLED, str(tmp_path / f"{name}.safetensors"), str(kill_at)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert start("whole", 0) == 0
    assert [start("killed", 200), start("killed", 300), start("killed", 0)] == [-9, -9, 0]
    from rasplens.learned import load_learned

    whole, killed = (load_learned(tmp_path / f"{name}.safetensors.model") for name in ("whole", "killed"))
    assert_same_weights(whole, killed)
    assert without_seconds(whole.history) == without_seconds(killed.history)


@pytest.mark.slow
def test_the_smallest_shipped_model_is_reproduced_by_its_recipe():
    shipped = load_pretrained("copy")
    again = train("copy", shipped.provenance["recipe_name"], shipped.provenance["seed"])
    assert get_recipe("copy", shipped.provenance["recipe_name"]) == Recipe.from_dict(shipped.provenance["recipe"])
    accuracy, stated = again.provenance["accuracy"], shipped.provenance["accuracy"]
    assert accuracy["token"] == pytest.approx(stated["token"], abs=0.01)
    assert accuracy["sequence"] == pytest.approx(stated["sequence"], abs=0.05)


@pytest.mark.parametrize(("training", "held_out", "done"), [(0.99, 0.2, True), (0.2, 0.99, False)])
def test_training_stops_by_inputs_that_are_not_held_out(task, training, held_out, done):
    job = module._Training(task, replace(RECIPE, stop_at=0.98), (0,), TrainConfig())
    report = Report(0, 100, 0.1, training_token=training, token=held_out, sequence=held_out)
    assert job.is_done(RunState(None, {}, (report,))) is done
