from dataclasses import replace

import numpy as np
import pytest

from rasplens.learned import Architecture, Recipe, get_recipe, load_pretrained, train, untrained
from rasplens.learned.trainer import TrainingError
from rasplens.tasks import get_task

SMALL = Architecture(n_layers=1, n_heads=1, d_model=16, d_head=16)
RECIPE = Recipe(SMALL, 64, steps=300, learning_rate=1e-2, weight_decay=0.01, warmup=20, clip=1.0, stop_at=2.0)


@pytest.fixture(scope="module")
def task():
    return get_task("sort", n_values=5, length=3)


@pytest.fixture(scope="module")
def trained(task):
    return train(task, RECIPE, seed=0)


def test_training_learns(task, trained):
    history = trained.history
    assert [report["step"] for report in history] == [100, 200, 300]
    assert history[-1]["loss"] < history[0]["loss"] / 2
    assert task.accuracy(trained).token > 0.8
    assert trained.provenance["accuracy"] == task.accuracy(trained)._asdict()
    assert trained.origin == "trained by recipe 'own' with seed 0"


def test_the_same_seed_gives_the_same_model_and_another_another(task, trained):
    again, other = train(task, RECIPE, seed=0), train(task, RECIPE, seed=1)
    for name, array in trained.transformer.weights.items():
        np.testing.assert_array_equal(again.transformer.weights[name], array)
    assert not np.array_equal(other.transformer.W_E, trained.transformer.W_E)


def test_what_is_frozen_stays_and_everything_else_moves():
    task = get_task("compression", n_digits=8)
    architecture = Architecture(2, 1, 16, 16, identity_v=True, identity_o=True)
    recipe = Recipe(architecture, batch_size=32, steps=20, learning_rate=1e-3, weight_decay=0.1)
    before = untrained(architecture, task, 0).weights
    after = train(task, recipe).transformer
    assert after.config.frozen  # the transformer checks that the matrices still are the identity
    moved = {name for name, array in after.weights.items() if not np.array_equal(array, before[name])}
    assert {name for name in before if not name.endswith(("W_V", "W_O"))} - moved == set()


def test_training_stops_once_it_is_good_enough(task):
    model = train(task, replace(RECIPE, stop_at=0.5))
    assert model.provenance["steps"] < RECIPE.steps
    assert model.provenance["accuracy"]["token"] >= 0.5


def test_progress_is_reported_chunk_by_chunk(task):
    reports = []
    train(task, replace(RECIPE, steps=150), progress=reports.append)
    assert [report.step for report in reports] == [100, 150]
    assert reports[0].seconds < reports[1].seconds


def test_a_loss_that_is_no_number_stops_training_with_a_way_out(task):
    with pytest.raises(
        TrainingError, match=r"The loss became (nan|inf) before step 100\. Lower the learning rate"
    ):
        train(task, replace(RECIPE, learning_rate=1e30, warmup=0, clip=0.0))


def test_smeared_keys_and_sinusoids_can_be_trained():
    task = get_task("copy", n_letters=4, block=2, length=8)
    architecture = Architecture(1, 2, 16, 8, positions="sinusoidal_qk", smeared_keys=True)
    model = train(task, Recipe(architecture, 64, 200, 1e-2, 0.01, warmup=20, clip=1.0))
    assert task.accuracy(model).token > 0.9
    assert model.transformer.weights["blocks.0.attn.smear"].any()


@pytest.mark.slow
def test_the_smallest_shipped_model_is_reproduced_by_its_recipe():
    shipped = load_pretrained("copy")
    again = train("copy", shipped.provenance["recipe_name"], shipped.provenance["seed"])
    assert get_recipe("copy", shipped.provenance["recipe_name"]).to_dict() == shipped.provenance["recipe"]
    accuracy, stated = again.provenance["accuracy"], shipped.provenance["accuracy"]
    assert accuracy["token"] == pytest.approx(stated["token"], abs=0.01)
    assert accuracy["sequence"] == pytest.approx(stated["sequence"], abs=0.05)
