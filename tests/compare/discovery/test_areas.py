"""Areas under curves, of many resamples at once."""

import numpy as np
import pytest
from scipy.stats import bootstrap
from sklearn.metrics import average_precision_score, roc_auc_score

from rasplens.compare.discovery.areas import N_DRAWN, precision_area, roc_area, stairs_area, with_interval
from rasplens.model.random_streams import rng

SKLEARN = {roc_area: roc_auc_score, precision_area: average_precision_score}


def by_sklearn(area, inside, outside):
    both = np.concatenate([inside, outside])
    return SKLEARN[area](np.arange(len(both)) < len(inside), both)


@pytest.mark.parametrize("area", SKLEARN)
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_areas_are_those_of_scikit_learn(area, decimals):
    """With few values many scores are tied, also across the circuit."""
    drawn = np.random.default_rng(0)
    inside, outside = drawn.normal(1, 1, (5, 7)).round(decimals), drawn.normal(0, 1, (5, 40)).round(decimals)
    expected = [by_sklearn(area, *one) for one in zip(inside, outside, strict=True)]
    np.testing.assert_allclose(area(inside, outside), expected, rtol=1e-12)
    assert np.std(expected) > 0.01


@pytest.mark.parametrize("area", SKLEARN)
def test_an_interval_is_that_of_resamples_one_by_one(area):
    drawn = np.random.default_rng(1)
    inside, outside = drawn.normal(1, 1, 12), drawn.normal(0, 1, 60)
    one_by_one = bootstrap(
        (inside, outside),
        lambda *samples: by_sklearn(area, *samples),
        vectorized=False,
        method="percentile",
        n_resamples=N_DRAWN,
        rng=rng(0, "intervals of areas"),
    )
    middle, low, high = with_interval(area, inside, outside, 0)
    assert middle == pytest.approx(by_sklearn(area, inside, outside))
    assert (low, high) == pytest.approx(tuple(one_by_one.confidence_interval))
    assert low < middle < high


def test_stairs_stand_on_fixed_thresholds():
    inside, outside = np.array([[30.0, 0.3], [0.6, 0.6]]), np.array([[0.3, 0.0, 0.0], [0.55, 0.0, 0.0]])
    # Of the first: half of the circuit with none outside, the rest with a third; of the second, all with a third.
    np.testing.assert_allclose(stairs_area(inside, outside), [0.5 + 0.5 * 2 / 3, 2 / 3])


def test_one_edge_inside_has_an_area_without_an_interval():
    middle, low, high = with_interval(roc_area, np.array([1.0]), np.array([0.0, 2.0]), 0)
    assert middle == 0.5
    assert np.isnan([low, high]).all()
    assert np.isnan(with_interval(roc_area, np.array([]), np.array([0.0, 2.0]), 0)).all()
