import numpy as np
import pytest

from rasplens.compare import CompareConfig
from rasplens.compare.evidence.axes import AXES, Axis
from rasplens.compare.verdict.calibration.circuits import FITTED_ON, MEASURED_ON
from rasplens.compare.verdict.calibration.fit import Observation, fit, invariance, measures, observations
from rasplens.compare.verdict.verdict import IMPLEMENTS, Verdict, features, probability, shipped


def observed(same, level, kind="itself", program="p"):
    """A labelled pair all of whose axes have one score."""
    axes = tuple(Axis(name, level, level, level, "") for name in AXES)
    said = Verdict(IMPLEMENTS if level > 0.9 else "does not", level, level, level, {}, ())
    return Observation("c", program, kind, same, axes, said, (level,))


def test_a_fitted_mapping_tells_apart_what_it_was_fitted_on():
    rng = np.random.default_rng(0)
    pairs = [observed(True, level) for level in rng.uniform(0.8, 1, 30)]
    pairs += [observed(False, level, "untrained") for level in rng.uniform(0, 0.4, 30)]
    mapping = fit(pairs, {"circuits": ["c"]})
    assert min(mapping.weights) >= 0
    p = [float(probability(mapping, features(pair.axes))) for pair in pairs]
    assert min(p[:30]) >= mapping.does_not
    assert max(p[30:]) < mapping.implements
    assert 0.4 < mapping.variable < 0.9
    assert mapping.provenance["pairs"] == 60


def test_labels_at_random_give_a_mapping_that_tells_nothing():
    rng = np.random.default_rng(0)
    pairs = [observed(bool(rng.integers(2)), level) for level in rng.uniform(0, 1, 200)]
    mapping = fit(pairs, {})
    low, high = (float(probability(mapping, np.array([level] * 3))) for level in (0.0, 1.0))
    assert abs(high - low) < 0.5


def test_pairs_of_one_kind_are_no_calibration():
    with pytest.raises(ValueError, match="known to be the same, and others known to differ"):
        fit([observed(True, 1.0)] * 3, {})


def test_measures_count_what_the_verdicts_say():
    pairs = [observed(True, 1.0), observed(True, 0.5), observed(False, 0.95), observed(False, 0.0)]
    found = measures(pairs)
    assert found["recognised"] == 0.5
    assert found["false_implements"] == 0.5
    assert found["auc"] == found["auc_attention"] == 0.75


def test_invariance_is_measured_against_the_model_that_was_disguised():
    pairs = [observed(True, 1.0), observed(True, 0.9, "disguised")]
    pairs += [observed(False, 0.3, "alternative, itself"), observed(False, 0.3, "alternative, disguised")]
    table = invariance(pairs).set_index("model")
    assert table.loc["disguised", "attention"] == pytest.approx(0.1)
    assert table.loc["alternative, disguised", "attention"] == 0


def test_the_shipped_mapping_says_where_it_comes_from_and_follows_the_evidence():
    mapping = shipped()
    assert mapping.provenance["circuits"] == list(FITTED_ON)
    assert mapping.provenance["pairs"] > 50
    assert 0 < mapping.does_not <= mapping.implements < 1
    assert float(probability(mapping, np.ones(3))) > mapping.implements
    assert float(probability(mapping, np.array([0.0, 0.5, 1.0]))) < mapping.implements


@pytest.mark.slow
def test_verdicts_on_a_circuit_that_the_mapping_was_not_fitted_on():
    found = observations([MEASURED_ON[0]], seed=5, config=CompareConfig(n_inputs=120))
    result = measures(found)
    assert result["auc"] >= 0.99
    assert result["false_implements"] == 0
    assert result["recognised"] >= 0.9
    same = invariance(found)
    disguised = same[same["model"] == "disguised"][[axis for axis in AXES if axis in same]]
    assert np.nanmax(disguised.to_numpy(dtype=float)) <= 1e-3
