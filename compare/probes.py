"""Linear probes, fitted on some inputs and scored on others.

Closed-form, because a comparison fits thousands: linear discriminant analysis for classes (it stays
right where classes lie along a line, as one-against-rest regression does not), ridge regression for
numbers.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

SHRINKAGE = 0.01
"""Weight of a spherical covariance in the within-class covariance, and of the ridge penalty."""

TEST_SHARE = 0.3
"""The last inputs, by this share, are held out from fitting."""

Features = Float[np.ndarray, "input feature"]


@dataclass(frozen=True, eq=False)
class Discriminant:
    """A linear classifier: the class of the highest `x · coefficients + intercepts`."""

    coefficients: Float[np.ndarray, "feature n_classes"]
    intercepts: Float[np.ndarray, " n_classes"]

    def predict(self, features: Features) -> Int[np.ndarray, " input"]:
        """The most likely class of each row."""
        return (features @ self.coefficients + self.intercepts).argmax(axis=1)


def fit_discriminant(features: Features, labels: Int[np.ndarray, " input"]) -> Discriminant:
    """Linear discriminant analysis with a shrunken covariance.

    With class means μ, class shares π and the within-class covariance Σ, the log-odds of Gaussian
    classes are linear: x · Σ⁻¹μ - ½ μ · Σ⁻¹μ + log π. Equal to scikit-learn's
    `LinearDiscriminantAnalysis(solver="lsqr", shrinkage=...)`, which takes a covariance per class and is
    a hundred times slower here.

    Args:
        features: One row per input.
        labels: Codes from 0 on; a code that is absent is never predicted.
    """
    features = features.astype(np.float64)
    counts = np.bincount(labels)
    present = counts > 0
    onehot = np.eye(len(counts))[labels]
    means = (onehot.T @ features) / np.maximum(counts, 1)[:, None]
    centred = features - means[labels]
    covariance = centred.T @ centred / len(features)
    spherical = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * spherical
    # Without any variance within classes (a constant activation) there would be nothing to divide by.
    covariance += np.finfo(np.float64).eps * np.eye(len(covariance))
    coefficients = cho_solve(cho_factor(covariance), means.T)
    shares = np.log(np.where(present, counts, 1) / len(labels))
    intercepts = np.where(present, shares - (means.T * coefficients).sum(axis=0) / 2, -np.inf)
    return Discriminant(coefficients, intercepts)


def class_accuracy(features: Features, labels: Int[np.ndarray, " input"]) -> float:
    """Held-out accuracy of a linear classifier, in [0, 1]."""
    split = _split(len(labels))
    probe = fit_discriminant(features[:split], labels[:split])
    return float((probe.predict(features[split:]) == labels[split:]).mean())


def number_r2(features: Features, numbers: Float[np.ndarray, " input"]) -> float:
    """Held-out variance explained by a ridge regression, at least 0.

    The penalty is relative to the mean variance of the features, as in `fit_discriminant`: the same
    residual stream on another scale gets the same score.
    """
    features, split = features.astype(np.float64), _split(len(numbers))
    variance = float(features[:split].var(axis=0).mean())
    if variance == 0:
        return 0.0
    probe = Ridge(alpha=SHRINKAGE * split * variance).fit(features[:split], numbers[:split])
    return max(0.0, float(r2_score(numbers[split:], probe.predict(features[split:]))))


def majority_share(labels: Int[np.ndarray, " input"]) -> float:
    """The held-out accuracy of always giving the commonest class of the fitted inputs."""
    split = _split(len(labels))
    return float((labels[split:] == np.bincount(labels[:split]).argmax()).mean())


def _split(n: int) -> int:
    return n - int(TEST_SHARE * n)
