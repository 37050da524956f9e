import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rasplens.compare.evidence.subspaces.probes import (
    SHRINKAGE,
    class_errors,
    explained,
    fit_discriminant,
    majority_share,
    number_errors,
    typical_variance,
)


def class_accuracy(features, labels):
    """Fitted on the first two thirds, scored on the rest."""
    n = len(labels) * 2 // 3
    return explained(class_errors(features[:n], labels[:n], features[n:], labels[n:]))


def number_r2(features, numbers):
    """Fitted on the first two thirds, scored on the rest."""
    n = len(numbers) * 2 // 3
    return explained(number_errors(features[:n], numbers[:n], features[n:], numbers[n:]))


@pytest.fixture
def clusters():
    """Three Gaussian classes in eight dimensions."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 600)
    return rng.normal(size=(3, 8))[labels] + rng.normal(size=(600, 8)), labels


def test_it_agrees_with_scikit_learn(clusters):
    """Which shrinks towards the mean over coordinates: with its share set to shrink as much, all is the same."""
    features, labels = clusters
    means = np.stack([features[labels == label].mean(axis=0) for label in range(3)])
    within = np.cov((features - means[labels]).T, bias=True)
    added = SHRINKAGE / (1 - SHRINKAGE) * typical_variance(within)
    share = added / (added + np.trace(within) / 8)
    # scikit-learn shrinks each class's covariance towards its own mean before it averages: the same on average.
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=share).fit(features, labels)
    ours, scale = fit_discriminant(features, labels), (1 - SHRINKAGE) / (1 - share)
    expected = theirs.decision_function(features)
    priors = np.log(np.bincount(labels) / 600)
    scores = scale * (features @ ours.coefficients + ours.intercepts - priors) + priors
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
    assert class_accuracy(np.ones((300, 4), dtype=np.float32), labels) == majority_share(
        labels[:200], labels[200:]
    )


def test_the_score_is_on_inputs_that_were_not_fitted():
    """With more dimensions than inputs, a probe fits anything; held out, it scores nothing."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(100, 300)), rng.integers(0, 2, 100)
    fitted = fit_discriminant(features[:70], labels[:70])
    assert (fitted.predict(features[:70]) == labels[:70]).all()
    assert class_accuracy(features, labels) < 0.8


def test_a_class_that_does_not_occur_is_never_predicted():
    labels = np.array([0, 0, 2, 2] * 20)
    features = np.random.default_rng(0).normal(size=(80, 3)) + labels[:, None]
    assert 1 not in fit_discriminant(features, labels).predict(features)


def test_the_majority_share_is_that_of_the_commonest_fitted_value_among_held_out_inputs():
    assert majority_share(np.array([0, 0, 1]), np.array([1, 1, 0, 1])) == 0.25
    assert majority_share(np.array([0, 0, 0]), np.array([0, 0])) == 1.0


def test_errors_are_per_input_and_beside_the_most_that_they_could_be(clusters):
    features, labels = clusters
    errors = class_errors(features[:400], labels[:400], features[400:], labels[400:])
    wrong = fit_discriminant(features[:400], labels[:400]).predict(features[400:]) != labels[400:]
    np.testing.assert_array_equal(errors, np.stack([wrong, np.ones(200)]))
    assert 0 < wrong.mean() < 1
    assert explained(errors) == pytest.approx(1 - wrong.mean())


def test_errors_of_numbers_stand_beside_those_of_the_fitted_mean(clusters):
    features, _ = clusters
    numbers = features @ np.arange(8.0)
    errors = number_errors(features[:400], numbers[:400], features[400:], numbers[400:])
    np.testing.assert_allclose(errors[1], (numbers[400:] - numbers[:400].mean()) ** 2)
    assert errors[0].sum() < 0.05 * errors[1].sum()
    flat = number_errors(np.ones((400, 8)), numbers[:400], np.ones((200, 8)), numbers[400:])
    np.testing.assert_array_equal(flat[0], flat[1])
    assert explained(flat) == 0


def test_a_probe_that_is_worse_than_nothing_explains_nothing():
    assert explained(np.array([[2.0, 3.0], [1.0, 1.0]])) == 0
    assert explained(np.zeros((2, 3))) == 0
    assert explained(np.array([[0.5, 0.0], [1.0, 1.0]])) == 0.75


def test_the_typical_variance_does_not_count_idle_directions():
    covariance = np.diag([4.0, 4.0, 0.0, 0.0])
    assert typical_variance(covariance) == 4.0
    assert typical_variance(covariance) != np.trace(covariance) / 4  # what the mean over coordinates says
    assert typical_variance(np.zeros((3, 3))) == 0
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    uneven = np.diag([9.0, 1.0, 0.0, 0.0])
    assert typical_variance(rotation @ uneven @ rotation.T) == pytest.approx(typical_variance(uneven))
    assert typical_variance(uneven) == pytest.approx(8.2)


def test_scores_do_not_move_when_idle_directions_are_added(clusters):
    features, labels = clusters
    numbers = features @ np.arange(8.0) + np.random.default_rng(3).normal(size=600)
    wide = np.pad(features, ((0, 0), (0, 30)))
    assert number_r2(wide, numbers) == pytest.approx(number_r2(features, numbers), abs=1e-9)
    assert class_accuracy(wide, labels) == class_accuracy(features, labels)
    busy = np.hstack([features, 10 * np.random.default_rng(4).normal(size=(600, 30))])
    assert number_r2(busy, numbers) < number_r2(features, numbers) - 0.01  # the negative control
