"""Can the answer positions be told apart in the residual stream?"""

import itertools

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.errors import RaspLensError
from rasplens.model import random_streams


def position_separability(studied: StudiedModel, seed: int = 0) -> pd.DataFrame:
    """How well a linear classifier tells the residual streams of two answer positions apart, on held-out inputs.

    Returns:
        One row per hook point and pair of answer positions: point, first, second, accuracy, auc (area under the
        ROC curve), and shuffled, the area with all labels permuted; 0.5 is chance.

    Raises:
        RaspLensError: If there are fewer than ten inputs.
    """
    if studied.n_inputs < 10:
        raise RaspLensError(f"Separability needs at least 10 inputs to fit and test on; got {studied.n_inputs}.")
    rng = random_streams.rng(seed, "separability")
    order = rng.permutation(studied.n_inputs)
    fitted, tested = np.split(order, [studied.n_inputs * 7 // 10])
    rows = []
    for point in studied.residual_points:
        residual = studied.residual(point)
        for first, second in itertools.combinations(studied.task.loss_positions, 2):
            x, y = _labelled(residual, first, second, fitted)
            new_x, new_y = _labelled(residual, first, second, tested)
            scores = _fit(x, y).decision_function(new_x)
            control = _fit(x, rng.permutation(y)).decision_function(new_x)
            rows.append(
                {
                    "point": point,
                    "first": first,
                    "second": second,
                    "accuracy": float(((scores > 0) == new_y).mean()),
                    "auc": float(roc_auc_score(new_y, scores)),
                    "shuffled": float(roc_auc_score(rng.permutation(new_y), control)),
                }
            )
    return pd.DataFrame(rows, columns=["point", "first", "second", "accuracy", "auc", "shuffled"])


def _fit(x: np.ndarray, y: np.ndarray) -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)).fit(x, y)


def _labelled(residual: np.ndarray, first: int, second: int, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The residual streams at two positions, one below the other, and which of the two each is from."""
    both = np.concatenate([residual[inputs, first], residual[inputs, second]]).astype(np.float64)
    return both, np.repeat([False, True], len(inputs))
