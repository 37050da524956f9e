import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax

from rasplens.learned import get_recipe, untrained
from rasplens.learned.training.steps import build_optimiser, build_steps, usable_devices
from rasplens.tasks import get_task

SHARED = """
import numpy as np
from dataclasses import replace
from rasplens.learned import TrainConfig, get_recipe, train, use_all_cores
from rasplens.learned.training.steps import usable_devices
from rasplens.tasks import get_task

use_all_cores()
task = get_task("copy", n_letters=5, block=2, length=6)
recipe = replace(get_recipe("copy", "fast"), steps=50, warmup=5)
weights = {}
for worth in (0, 10**9):
    config = TrainConfig(worth_sharing=worth)
    weights[worth] = train(task, recipe, config=config).transformer.weights
    print(usable_devices(task, recipe, config))
print(max(float(np.abs(weights[0][name] - weights[10**9][name]).max()) for name in weights[0]))
"""


@pytest.mark.slow
def test_large_steps_are_shared_out_among_cores_and_train_the_same():
    """In a process of its own: JAX takes the number of devices before it runs anything."""
    done = subprocess.run([sys.executable, "-c", SHARED], check=True, capture_output=True, text=True)
    shared, alone, difference = done.stdout.split()
    assert int(shared) >= int(alone) == 1
    assert float(difference) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("every_position", [False, True])
def test_the_loss_is_read_where_the_recipe_says(every_position):
    task = get_task("copy", n_letters=5, block=2, length=6)
    recipe = replace(get_recipe("copy", "fast"), every_position=every_position)
    start = untrained(recipe.architecture, task, 0)
    weights = {name: jnp.asarray(array)[None] for name, array in start.weights.items()}
    ids = task.sample(np.random.default_rng(0), 7)
    read = range(5) if every_position else task.loss_positions
    answers = ids[:, [position + 1 for position in read]]
    steps = build_steps(task, recipe, 1)
    batch = ids.astype(np.int32)[None, None], answers.astype(np.int32)[None, None]
    _, losses = steps.run((weights, steps.begin(weights)), np.ones(1, dtype=bool), *batch)
    logs = log_softmax(start(ids)[:, list(read)], axis=-1)
    expected = -np.take_along_axis(logs, answers[..., None], axis=-1).mean()
    assert float(losses[0, 0]) == pytest.approx(expected, rel=1e-5)
    assert steps.answers(weights, ids).shape == (1, 7, 4)


def test_one_device_does_all_where_there_is_one(monkeypatch):
    monkeypatch.setattr(jax, "devices", lambda: ["the only one"])  # a command before may have asked for more
    for name in ("sort", "copy", "compression"):
        assert usable_devices(get_task(name), get_recipe(name, "fast")) == 1


@pytest.mark.parametrize("warmup", [0, 3])
def test_the_rate_is_constant_or_rises_and_falls(warmup):
    recipe = replace(get_recipe("sort", "published"), steps=10, warmup=warmup, weight_decay=0.0)
    optimiser = build_optimiser(recipe)
    weights = {"w": jnp.zeros(1)}
    state, sizes = optimiser.init(weights), []
    for _ in range(10):
        updates, state = optimiser.update({"w": jnp.ones(1)}, state, weights)
        sizes.append(float(-updates["w"][0]) / recipe.learning_rate)
    if warmup:
        np.testing.assert_allclose(sizes[:4], [0, 1 / 3, 2 / 3, 1], atol=1e-4)
        assert sizes[4:] == sorted(sizes[4:], reverse=True)
        assert sizes[-1] < 0.1
    else:
        np.testing.assert_allclose(sizes, np.ones(10), atol=1e-4)
