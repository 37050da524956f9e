import numpy as np
import pytest

from rasplens.compare.evidence.ablation.measurement import METHODS, Edited, measured_effects, replacement

ACTIVATION = np.random.default_rng(0).normal(size=(6, 3, 2))


def test_what_takes_the_place_of_an_activation():
    assert not replacement(ACTIVATION, "zero", 0).any()
    mean = replacement(ACTIVATION, "mean", 0)
    assert mean.shape == ACTIVATION.shape
    np.testing.assert_allclose(mean[3], ACTIVATION.mean(axis=0))


def test_resampling_gives_every_input_that_of_another_one_and_follows_the_seed():
    first, again, other = (replacement(ACTIVATION, "resample", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not (first == ACTIVATION).all(axis=(1, 2)).any()
    np.testing.assert_array_equal(np.sort(first, axis=0), np.sort(ACTIVATION, axis=0))


def test_where_nothing_can_be_ablated_there_are_columns_and_no_rows(with_itself):
    found = measured_effects(with_itself.learned, [], lambda method: [], columns=["layer", "head"])
    assert found.table.empty
    assert list(found.table)[:2] == ["layer", "head"]
    nothing = (0, with_itself.learned.n_inputs)
    assert [found.drops[method].shape for method in METHODS] == [nothing] * len(METHODS)


def test_logits_that_stay_cost_nothing_and_those_of_another_input_do(with_itself):
    studied = with_itself.learned
    logits = studied.clean_logits

    edited = Edited(np.stack([logits, np.roll(logits, 1, axis=0)]), range(studied.targets.shape[1]))
    found = measured_effects(studied, [{"n": 0}, {"n": 1}], lambda method: [edited])
    assert found.table.loc[0, "zero"] == 0
    assert found.table.loc[0, "zero_kl"] == pytest.approx(0, abs=1e-9)
    assert found.table.loc[1, "zero"] > 0.1
    assert found.table.loc[1, "zero_kl"] > 0.1
