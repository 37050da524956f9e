"""Compression as a whole: what it gives, that it can be interrupted, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compile import compile_program, programs
from rasplens.compile.rasp import tokens
from rasplens.learned import TrainConfig, compress, compress_many
from rasplens.learned.compressor import CompressionRecipe
from rasplens.learned.compressor.compress_model import check_members
from rasplens.learned.compressor.evaluation import evaluate
from rasplens.learned.errors import TrainingError
from rasplens.model import StorageError

SHORT = CompressionRecipe(300, 64, 1e-2, 1e-3)
BETTER = CompressionRecipe(1_500, 32, 1e-2, 1e-4, starts=2, trial=300)


@pytest.mark.slow
def test_a_compressed_program_answers_like_the_compiled_one(frac):
    model, narrower = compress_many(frac, [4, 1], [1], BETTER)
    found = evaluate(model)
    assert found.exhaustive
    assert found.token > 0.99
    assert model.answers([["a", "x", "b", "x"]])[0] == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    one = evaluate(narrower)
    assert one.token < 0.9  # the negative control: one direction does not hold is_x and frac_prevs


@pytest.mark.slow
def test_of_full_width_nothing_is_lost(unique):
    wide = unique.transformer.config.d_model
    found = evaluate(compress(unique, wide, CompressionRecipe(1, 8, 1e-9, 1e-9)))
    assert (found.token, found.sequence) == (1, 1)
    assert found.cosine == pytest.approx(1)
    assert found.loss == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_several_widths_and_seeds_come_out_as_if_each_were_alone(frac):
    models = compress_many(frac, [3, 5], [0, 1], SHORT)
    assert [(model.d, model.seed) for model in models] == [(3, 0), (3, 1), (5, 0), (5, 1)]
    np.testing.assert_allclose(models[1].projection, compress(frac, 3, SHORT, seed=1).projection, atol=1e-5)
    assert not np.allclose(models[0].projection, models[1].projection)
    assert [model.transformer.config.d_model for model in models] == [3, 3, 5, 5]
    again = compress_many(frac, [3, 5], [0, 1], SHORT)
    for one, other in zip(models, again, strict=True):
        np.testing.assert_array_equal(one.projection, other.projection)


@pytest.mark.slow
def test_the_best_of_several_first_maps_goes_on(frac):
    trial = replace(SHORT, steps=200, trial=200)
    alone = [evaluate(model).loss for model in compress_many(frac, [3], range(4), trial)]
    best = evaluate(compress(frac, 3, replace(trial, starts=6))).loss
    assert best < max(alone)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_ends_the_same(frac, tmp_path):
    path = tmp_path / "state.safetensors"
    config = TrainConfig(map_chunk=100, save_every=0.0)
    whole = compress(frac, 4, SHORT, config=config)
    steps = []

    def stop(report):
        steps.append(report.step)
        if report.step == 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compress(frac, 4, SHORT, config=config, progress=stop, state_path=path)
    told = {"progress": lambda report: steps.append(report.step), "state_path": path}
    resumed = compress(frac, 4, SHORT, config=config, **told)
    assert steps == [100, 200, 200, 300]
    np.testing.assert_array_equal(resumed.projection, whole.projection)
    assert [entry[0] for entry in resumed.history] == [100, 200, 300]


@pytest.mark.slow
def test_the_state_of_another_run_is_refused(frac, tmp_path):
    path, brief = tmp_path / "state.safetensors", replace(SHORT, steps=2)
    compress(frac, 4, brief, state_path=path)
    with pytest.raises(StorageError, match="members was"):
        compress(frac, 5, brief, state_path=path)
    program = programs.frac_prevs((tokens == "a").named("is_x"))
    other = compile_program(program, "abx", 4, causal=True, optimize=False, bos=True)
    with pytest.raises(StorageError, match="weights was"):  # another program of the same name and size
        compress(other, 4, brief, state_path=path)
    path.write_bytes(b"broken")
    with pytest.raises(StorageError, match=r"state\.safetensors.*Delete it"):
        compress(frac, 4, brief, state_path=path)


@pytest.mark.parametrize("d", [0, -1, 99, 2.5, True])
def test_widths_that_there_are_not_are_refused(frac, d):
    wide = frac.transformer.config.d_model
    with pytest.raises(ValueError, match=rf"d must be .*from 1 to {wide}.*got {d}"):
        check_members(frac, [(d, 0)])


def test_every_width_is_looked_at_before_anything_is_trained(frac):
    with pytest.raises(ValueError, match=r"d must be .*got 99"):
        compress_many(frac, [3, 99])


def test_nothing_and_twice_the_same_are_refused(frac):
    for widths, seeds in (([], [0]), ([3, 3], [0]), ([3], []), ([3], [1, 1])):
        with pytest.raises(ValueError, match=r"width.*seed.*got \["):
            compress_many(frac, widths, seeds, SHORT)


@pytest.mark.slow
def test_a_cross_entropy_of_numbers_is_refused(frac, unique):
    with pytest.raises(ValueError, match=r"'frac_prevs'.*output_loss"):
        compress(frac, 4, replace(SHORT, output_loss="cross_entropy"))
    assert compress(unique, 4, replace(SHORT, steps=2, output_loss="squared_error")).d == 4


@pytest.mark.slow
def test_what_diverges_says_so(unique):
    with pytest.raises(TrainingError, match=r"d=4 diverged .*step 50 .*learning rate"):
        compress(unique, 4, CompressionRecipe(50, 16, 1e30, 1e30))


def test_only_compiled_models_are_compressed(frac):
    with pytest.raises(TypeError, match=r"CompiledModel.*got Transformer"):
        check_members(frac.transformer, [(3, 0)])
