"""Several starts at several learning rates, and which of them goes on."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compile import compile_program, programs
from rasplens.learned import TrainConfig, compress, compress_many
from rasplens.learned.compressor import CompressionRecipe
from rasplens.learned.compressor.compress_model import better_end
from rasplens.learned.compressor.evaluation import evaluate
from rasplens.learned.compressor.steps import State
from rasplens.learned.compressor.trainer import leading_heats

TWO_HEATS = CompressionRecipe(60, 16, 1e-2, 1e-2, starts=3, fitted=2, rates=(1.0, 1.0, 0.001), trial=20)


@pytest.fixture(scope="module")
def steep():
    return compile_program(programs.histogram(), "ab", 3)


def test_the_heat_with_the_least_loss_leads_unless_it_diverged():
    loss, least = np.array([1, 2, np.nan, 5, np.nan, np.nan]), np.array([3, 2, 0, 4, 1, 2.0])
    state = State(None, None, None, loss, least, None)
    assert leading_heats(state, 2)[:2].tolist() == [1, 3]
    assert leading_heats(state, 3).tolist() == [1, 3]
    assert leading_heats(state, 1).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_fitted_start_at_a_small_rate_keeps_a_steep_program(steep):
    narrow = steep.transformer.config.d_model - 1
    kept, lost = (compress(steep, narrow, recipe) for recipe in (TWO_HEATS, replace(TWO_HEATS, fitted=0)))
    assert evaluate(kept).token == 1
    assert evaluate(lost).token < 0.9  # the negative control: the same from random maps


@pytest.mark.slow
def test_with_two_heats_an_interrupted_run_ends_the_same(steep, tmp_path):
    config = TrainConfig(map_chunk=10, save_every=0.0)
    path, seen = tmp_path / "state.safetensors", []

    def stop(report):
        seen.append((report.d, report.step))
        if report.step == 50:
            raise KeyboardInterrupt

    options = {"recipe": replace(TWO_HEATS, fitted=0), "config": config}
    whole = compress_many(steep, [4, 6], **options)
    with pytest.raises(KeyboardInterrupt):
        compress_many(steep, [4, 6], progress=stop, state_path=path, **options)
    assert seen == [(4, 30), (6, 30), (4, 40), (6, 40), (4, 50)]
    resumed = compress_many(steep, [4, 6], state_path=path, **options)
    for one, other in zip(resumed, whole, strict=True):
        np.testing.assert_array_equal(one.projection, other.projection)
        assert one.history == other.history


@pytest.mark.slow
def test_one_heat_may_diverge_while_another_goes_on(steep):
    wild = replace(TWO_HEATS, learning_rate=1e30, final_learning_rate=1e30, rates=(1.0, 1.0, 1e-36))
    model = compress(steep, steep.transformer.config.d_model, wild)
    assert evaluate(model).token == 1
    assert np.isfinite(model.history).all()


@pytest.mark.slow
def test_the_better_end_has_more_right_answers_or_else_less_loss(steep):
    wide = steep.transformer.config.d_model
    tiny = CompressionRecipe(1, 8, 1e-9, 1e-9)
    right, wrong = compress(steep, wide, tiny), compress(steep, 2, tiny)
    assert better_end([wrong, right], [0.0, 1.0]) is right
    assert better_end([right, compress(steep, wide, tiny, seed=1)], [1.0, 2.0]) is right
    assert better_end([wrong], [5.0]) is wrong
