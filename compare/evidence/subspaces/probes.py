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

SHRINKAGE = 0.01
"""Weight of a spherical covariance in the within-class covariance, and of the ridge penalty."""

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
    classes are linear: x · Σ⁻¹μ - ½ μ · Σ⁻¹μ + log π. As scikit-learn's
    `LinearDiscriminantAnalysis(solver="lsqr", shrinkage=...)`, which takes a covariance per class and is a hundred
    times slower here; but it shrinks towards `typical_variance`, so that unused directions change nothing.

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
    spherical = typical_variance(covariance) * np.eye(len(covariance))
    covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * spherical
    # Without any variance within classes (a constant activation) there would be nothing to divide by.
    covariance += np.finfo(np.float64).eps * np.eye(len(covariance))
    coefficients = cho_solve(cho_factor(covariance), means.T)
    shares = np.log(np.where(present, counts, 1) / len(labels))
    intercepts = np.where(present, shares - (means.T * coefficients).sum(axis=0) / 2, -np.inf)
    return Discriminant(coefficients, intercepts)


def class_errors(
    fitted: Float[np.ndarray, "fitted feature"],
    labels: Int[np.ndarray, " fitted"],
    features: Features,
    wanted: Int[np.ndarray, " input"],
) -> Float[np.ndarray, "2 input"]:
    """Where a linear classifier, fitted on some inputs, is wrong on others (1), and the most that can be, 1."""
    wrong = fit_discriminant(fitted, labels).predict(features) != wanted
    return np.stack([wrong, np.ones(len(wrong))]).astype(np.float64)


def number_errors(
    fitted: Float[np.ndarray, "fitted feature"],
    numbers: Float[np.ndarray, " fitted"],
    features: Features,
    wanted: Float[np.ndarray, " input"],
) -> Float[np.ndarray, "2 input"]:
    """For a ridge regression fitted on some inputs, on others: its squared errors, and those of the mean.

    The penalty is relative to the scatter of the features, as in `fit_discriminant`: the same residual stream on
    another scale, or in a wider space, gets the same score.
    """
    fitted = fitted.astype(np.float64)
    plain = (wanted - numbers.mean()) ** 2
    variance = typical_variance(np.cov(fitted, rowvar=False, bias=True).reshape(fitted.shape[1], -1))
    if variance == 0:
        return np.stack([plain, plain])
    probe = Ridge(alpha=SHRINKAGE * len(fitted) * variance).fit(fitted, numbers)
    return np.stack([(wanted - probe.predict(features.astype(np.float64))) ** 2, plain])


def explained(errors: Float[np.ndarray, "2 input"]) -> float:
    """From errors and the most that they could be, the share that a probe saves: accuracy or R², at least 0."""
    most = errors[1].sum()
    return max(0.0, float(1 - errors[0].sum() / most)) if most > 0 else 0.0


def majority_share(labels: Int[np.ndarray, " fitted"], wanted: Int[np.ndarray, " input"]) -> float:
    """The accuracy of always giving the commonest class of the fitted inputs."""
    return float((wanted == np.bincount(labels).argmax()).mean())


def typical_variance(covariance: Float[np.ndarray, "feature feature"]) -> float:
    """The variance along a direction that the data use: the mean of the spectrum, weighted by itself.

    Unlike the mean over coordinates it does not depend on how many directions are unused.
    """
    total = float(np.trace(covariance))
    return float((covariance**2).sum()) / total if total > 0 else 0.0
