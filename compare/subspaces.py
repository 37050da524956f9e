"""First axis: where in the learned residual stream each variable of the program can be read off.

A linear probe finds what is present, not what is used, and a wide stream holds many things by chance;
so each score stands beside three others: the commonest value, a probe for shuffled labels, and the same
probe on an untrained model (Hewitt & Liang 2019, "Designing and Interpreting Probes with Control Tasks").
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from rasplens.compare.live import live_positions
from rasplens.compare.pairing import Pairing
from rasplens.compare.probes import class_accuracy, majority_share, number_r2
from rasplens.compile import Variable
from rasplens.compile.rasp import Encoding

MOST_COMMON = 0.95
"""A variable whose commonest value covers more of the inputs than this counts as constant there."""

COLUMNS = ("variable", "measure", "point", "position", "score", "chance", "shuffled", "untrained")


def decodability(pairing: Pairing, seed: int) -> pd.DataFrame:
    """Held-out scores of linear probes in the learned model, with controls.

    Returns:
        One row per variable, hook point of the learned model and position: the positions at which the
        variable varies over inputs and the compiled model uses it for an answer. `measure` is "accuracy"
        for classes or "R²" for numbers; `chance` is the commonest value's share (0 for numbers);
        `shuffled` and `untrained` are the same probe on shuffled labels and on an untrained model.
    """
    # Probes are small: with more threads, the BLAS libraries of numpy and scipy wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        return pd.DataFrame(_rows(pairing, np.random.default_rng([seed, 2])), columns=list(COLUMNS))


def _rows(pairing: Pairing, rng: np.random.Generator) -> Iterator[tuple]:
    shuffle = rng.permutation(len(pairing.ids))
    for name, variable in pairing.compiled.variables.items():
        if variable.is_auxiliary:  # a step of the compiler's own: nothing that a learned model should hold
            continue
        for position in live_positions(pairing.reference, variable):
            codes = pairing.codes[name][:, position]
            if not varies(codes):
                continue
            for point in pairing.learned.residual_points:
                learned = pairing.learned.residual(point)[:, position]
                untrained = pairing.untrained.residual(point)[:, position]
                yield (
                    name,
                    "R²" if variable.encoding is Encoding.NUMERICAL else "accuracy",
                    point,
                    position,
                    _score(variable, codes, learned),
                    0.0 if variable.encoding is Encoding.NUMERICAL else majority_share(_classes(codes)),
                    _score(variable, codes[shuffle], learned),
                    _score(variable, codes, untrained),
                )


def varies(codes: np.ndarray) -> bool:
    """Whether a variable takes more than one value often enough to be decoded."""
    _, counts = np.unique(codes, return_counts=True)
    return bool(counts.max() <= MOST_COMMON * len(codes))


def _score(variable: Variable, codes: np.ndarray, activations: np.ndarray) -> float:
    if variable.encoding is Encoding.CATEGORICAL:
        return class_accuracy(activations, _classes(codes))
    numbers = np.array([float(value) for value in variable.values])[codes]
    defined = codes >= 0
    return number_r2(activations[defined], numbers[defined])


def _classes(codes: np.ndarray) -> np.ndarray:
    """The codes that occur, from 0 on, undefined among them."""
    return np.unique(codes, return_inverse=True)[1]
