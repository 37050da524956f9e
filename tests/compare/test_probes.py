import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rasplens.compare.probes import SHRINKAGE, class_accuracy, fit_discriminant, majority_share, number_r2


@pytest.fixture
def clusters():
    """Three Gaussian classes in eight dimensions."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 600)
    return rng.normal(size=(3, 8))[labels] + rng.normal(size=(600, 8)), labels


def test_it_agrees_with_scikit_learn(clusters):
    features, labels = clusters
    ours = fit_discriminant(features, labels)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE).fit(features, labels)
    # scikit-learn shrinks each class's covariance before it averages; with one shrinkage that is ours.
    scores = features @ ours.coefficients + ours.intercepts
    expected = theirs.decision_function(features)
    np.testing.assert_allclose(scores - scores[:, :1], expected - expected[:, :1], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(features), theirs.predict(features))


def test_classes_along_a_line_are_told_apart():
    """Where one-against-rest regression fails: the middle classes of a one-dimensional code."""
    labels = np.tile(np.arange(10), 60)
    features = labels[:, None] + np.random.default_rng(0).normal(0, 0.05, (600, 1))
    assert class_accuracy(features, labels) == 1.0


def test_noise_scores_at_chance(clusters):
    rng = np.random.default_rng(1)
    noise, labels = rng.normal(size=(2_000, 8)), rng.integers(0, 4, 2_000)
    assert abs(class_accuracy(noise, labels) - 0.25) < 0.06
    assert number_r2(noise, rng.normal(size=2_000)) < 0.02


def test_scores_do_not_move_when_the_residual_stream_is_rotated(clusters):
    features, labels = clusters
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(8, 8)))[0]
    assert class_accuracy(features @ rotation, labels) == class_accuracy(features, labels)
    numbers = features @ np.arange(8) + np.random.default_rng(3).normal(size=600)
    assert number_r2(features @ rotation, numbers) == pytest.approx(number_r2(features, numbers), abs=1e-6)
    permuted = features[np.random.default_rng(4).permutation(600)]
    assert class_accuracy(permuted, labels) < class_accuracy(features, labels) - 0.2  # the negative control


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scores_do_not_move_with_the_scale_of_the_residual_stream(clusters, scale):
    features, labels = clusters
    assert class_accuracy(scale * features, labels) == class_accuracy(features, labels)
    numbers = features @ np.arange(8) + np.random.default_rng(3).normal(size=600)
    assert number_r2(scale * features, numbers) == pytest.approx(number_r2(features, numbers), abs=1e-9)
    uneven = features * np.array([1, 1, 1, 1, 1, 1, 1, scale])  # one direction alone: no invariance, the control
    assert number_r2(uneven, numbers) != pytest.approx(number_r2(features, numbers), abs=1e-9)


def test_linear_numbers_are_explained():
    features = np.random.default_rng(0).normal(size=(500, 5))
    assert number_r2(features, features @ np.arange(5)) > 0.99


def test_a_constant_site_decodes_nothing_and_breaks_nothing():
    labels = np.random.default_rng(0).integers(0, 3, 300)
    assert class_accuracy(np.ones((300, 4), dtype=np.float32), labels) == majority_share(labels)


def test_the_score_is_on_inputs_that_were_not_fitted():
    """With more dimensions than inputs, a probe fits anything; held out, it is worth nothing."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(100, 300)), rng.integers(0, 2, 100)
    fitted = fit_discriminant(features[:70], labels[:70])
    assert (fitted.predict(features[:70]) == labels[:70]).all()
    assert class_accuracy(features, labels) < 0.8


def test_a_class_that_does_not_occur_is_never_predicted():
    labels = np.array([0, 0, 2, 2] * 20)
    features = np.random.default_rng(0).normal(size=(80, 3)) + labels[:, None]
    assert 1 not in fit_discriminant(features, labels).predict(features)


def test_the_majority_share_is_of_the_held_out_inputs():
    assert majority_share(np.array([0] * 7 + [1] * 3)) == 0.0
    assert majority_share(np.array([0] * 10)) == 1.0
