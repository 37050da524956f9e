from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.learned import compress
from rasplens.learned.compressor.compressed_model import compressed_by
from rasplens.learned.compressor.evaluation import evaluate
from rasplens.learned.compressor.examples import examples
from rasplens.learned.compressor.recipe import CompressionRecipe
from rasplens.learned.compressor.steps import build_loss, build_optimiser, build_steps, first_maps

STILL = CompressionRecipe(400, 64, 1e-12, 1e-12)


def test_first_maps_are_orthonormal_and_filled_up_with_zeros():
    maps = first_maps(9, [(3, 0), (5, 0), (3, 1), (3, 0, 1)])
    assert maps.shape == (4, 9, 5)
    for own, d in zip(maps, (3, 5, 3, 3), strict=True):
        np.testing.assert_allclose(own[:, :d].T @ own[:, :d], np.eye(d), atol=1e-6)
        assert (own[:, d:] == 0).all()
    assert not np.allclose(maps[0], maps[2])
    assert not np.allclose(maps[0], maps[3])


@pytest.mark.slow
@pytest.mark.parametrize(("which", "loss"), [("frac", "squared_error"), ("unique", "cross_entropy")])
def test_the_losses_are_those_of_the_evaluation(which, loss, request):
    """Of a map that hardly moves, over so many batches that they are nearly all inputs."""
    compiled = request.getfixturevalue(which)
    maps = first_maps(compiled.transformer.config.d_model, [(4, 0)])
    training = build_steps(compiled, examples(compiled), STILL, loss)
    _, output, layers = training.run(training.begin(jnp.asarray(maps), jnp.ones(1)), 0, jnp.array([0]), 400)
    found = evaluate(compressed_by(compiled, maps[0].astype(float)))
    assert float(output.mean()) == pytest.approx(found.output_loss, rel=0.03)
    assert float(layers.mean()) == pytest.approx(found.loss, rel=0.03)


def test_what_is_minimised_counts_the_layers_with_the_weight_of_the_recipe(unique):
    loss = build_loss(unique, examples(unique), replace(STILL, layer_weight=0.25), "cross_entropy")
    projection = jnp.asarray(first_maps(unique.transformer.config.d_model, [(4, 0)])[0])
    minimised, (output, layers) = loss(projection, jnp.arange(8))
    assert float(layers) > 0.1
    assert float(minimised) == pytest.approx(float(output + 0.25 * layers), rel=1e-5)


@pytest.mark.slow
def test_columns_of_zeros_stay_zeros(frac):
    recipe = CompressionRecipe(50, 32, 1e-2, 1e-2, weight_decay=0.1)
    training = build_steps(frac, examples(frac), recipe, "squared_error")
    maps = first_maps(frac.transformer.config.d_model, [(2, 0), (5, 0)])
    after, output, _ = training.run(training.begin(jnp.asarray(maps), jnp.ones(2)), 0, jnp.array([0, 0]), 50)
    assert (np.asarray(after.projection)[0, :, 2:] == 0).all()
    assert (np.asarray(after.projection)[1] != maps[1]).all()
    assert output.shape == (2, 50)


@pytest.mark.slow
def test_a_map_that_is_good_already_stays_good(frac):
    """Without a rise of the learning rate, the first steps led away from the exact map for good."""
    wide = frac.transformer.config.d_model
    recipe = CompressionRecipe(1_000, 64, 1e-2, 1e-4, warmup=100)
    assert evaluate(compress(frac, wide, recipe)).token == 1


def test_the_learning_rate_falls_linearly_and_then_stays():
    recipe = CompressionRecipe(100, 8, 1.0, 0.1, decay=0.5, b1=1e-9, b2=1e-9)
    optimiser, weight, moves = build_optimiser(recipe), jnp.ones(1), []
    state = optimiser.init(weight)
    for _ in range(100):
        update, state = optimiser.update(jnp.ones(1), state, weight)
        moves.append(float(-update[0]))
    np.testing.assert_allclose(moves[::25], [1.0, 0.55, 0.1, 0.1], atol=0.01)


@pytest.mark.slow
def test_each_member_has_its_own_learning_rate(frac):
    """A share of the recipe's, at which its first step is so much smaller."""
    recipe = CompressionRecipe(10, 32, 1e-2, 1e-2)
    training = build_steps(frac, examples(frac), recipe, "squared_error")
    maps = np.repeat(first_maps(frac.transformer.config.d_model, [(4, 0)]), 2, axis=0)
    after, *_ = training.run(training.begin(jnp.asarray(maps), jnp.array([1.0, 0.1])), 0, jnp.array([0, 0]), 1)
    full, tenth = np.abs(np.asarray(after.projection) - maps).max(axis=(1, 2))
    assert full == pytest.approx(1e-2, rel=0.01)
    assert tenth == pytest.approx(1e-3, rel=0.01)


@pytest.mark.slow
def test_the_best_map_is_kept_whatever_comes_after(unique):
    """An exact map, and steps that are far too large: they lead away from it, and it is what is returned."""
    wide = unique.transformer.config.d_model
    recipe = CompressionRecipe(200, 32, 0.5, 0.5)
    training = build_steps(unique, examples(unique), recipe, "cross_entropy")
    maps = first_maps(wide, [(wide, 0)])
    after, output, layers = training.run(
        training.begin(jnp.asarray(maps), jnp.ones(1)), 0, jnp.array([0]), recipe.steps
    )
    assert float(layers[0, -1]) > 1  # it is thrown off, the negative control
    np.testing.assert_allclose(after.best[0] @ after.best[0].T, np.eye(wide), atol=1e-5)
    assert float(after.least[0]) == pytest.approx(float(output[0, 0] + layers[0, 0]), rel=0.1)
    assert evaluate(compress(unique, wide, recipe)).token == 1
