"""First axis: where in the learned residual stream each variable of the program can be read off.

A linear probe finds what is present, not what is used, and a wide stream holds many things by chance;
so each score stands beside three others: the commonest value, a probe for shuffled labels, and the same
probe on an untrained model (Hewitt & Liang 2019, "Designing and Interpreting Probes with Control Tasks").
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from rasplens.compare.evidence.subspaces.probes import class_errors, explained, majority_share, number_errors
from rasplens.compare.evidence.subspaces.representations import varies
from rasplens.compare.models.pairing import Pairing
from rasplens.compile import Variable
from rasplens.compile.rasp import Encoding
from rasplens.model import random_streams

CONTROLS = ("chance", "shuffled", "untrained")

COLUMNS = ("variable", "measure", "point", "position", "choice", "score", "chance", "shuffled", "untrained")

CHOICE_SHARE = 1 / 3
"""The share of the fitting inputs that probes are not fitted on: they say which hook point is best."""


@dataclass(frozen=True, eq=False)
class Decodability:
    """Held-out scores of linear probes in the learned model, with controls.

    Attributes:
        table: One row per variable, hook point of the learned model and position: the positions at which the
            variable varies over inputs and the compiled model uses it for an answer. `measure` is "accuracy" for
            classes or "R²" for numbers; `chance` is the commonest value's share (0 for numbers); `shuffled` and
            `untrained` are the same probe on shuffled labels and on an untrained model. `choice` is the score on
            inputs that are neither fitted nor held out, by which hook points may be chosen.
        errors: For every row, the probe's error on each input, and the most that it could be: `[2, input]`.
    """

    table: pd.DataFrame
    errors: tuple[Float[np.ndarray, "2 input"], ...]


def decodability(pairing: Pairing, seed: int) -> Decodability:
    """Where in the learned residual stream each variable of the program can be read off."""
    rows = list(_rows(pairing, random_streams.rng(seed, "subspace decodability")))
    table = pd.DataFrame([row[:-1] for row in rows], columns=list(COLUMNS))
    return Decodability(table, tuple(row[-1] for row in rows))


def best_points(table: pd.DataFrame) -> pd.DataFrame:
    """For each variable the hook point with the highest `choice`, averaged over positions, with its scores."""
    keys = ["variable", "measure", "point"]
    means = table.groupby(keys, sort=False)[[*COLUMNS[4:]]].mean().reset_index()
    best = means.loc[means.groupby("variable", sort=False)["choice"].idxmax()].reset_index(drop=True)
    best["selectivity"] = best["score"] - best[list(CONTROLS)].max(axis=1)
    return best


def _rows(pairing: Pairing, rng: np.random.Generator) -> Iterator[tuple]:
    fitting = pairing.fitting
    assert fitting is not None
    shuffle = rng.permutation(fitting.n_inputs)
    for name, variable in pairing.compiled.variables.items():
        if variable.is_auxiliary:  # a step of the compiler's own: nothing that a learned model should hold
            continue
        is_number = variable.encoding is Encoding.NUMERICAL
        for position in pairing.relevant_positions(name):
            fitted, codes = (part.codes[name][:, position] for part in (fitting, pairing))
            if not (varies(codes) and varies(fitted)):
                continue
            for point in pairing.learned.residual_points:
                learned, untrained = (
                    [getattr(part, side).residual(point)[:, position] for part in (fitting, pairing)]
                    for side in ("learned", "untrained")
                )
                choice, errors = _probed(variable, fitted, codes, learned)
                yield (
                    name,
                    "R²" if is_number else "accuracy",
                    point,
                    position,
                    choice,
                    explained(errors),
                    0.0 if is_number else majority_share(*_classes(fitted, codes)),
                    explained(_probed(variable, fitted[shuffle], codes, learned)[1]),
                    explained(_probed(variable, fitted, codes, untrained)[1]),
                    errors,
                )


def _probed(
    variable: Variable, fitted: np.ndarray, codes: np.ndarray, activations: list[np.ndarray]
) -> tuple[float, np.ndarray]:
    """The score by which to choose, and the errors on held-out inputs, NaN where a number is undefined."""
    n = round(len(fitted) * (1 - CHOICE_SHARE))
    features, scored = activations[0][:n], np.concatenate([activations[0][n:], activations[1]])
    wanted = np.concatenate([fitted[n:], codes])
    if variable.encoding is Encoding.CATEGORICAL:
        labels, classes = _classes(fitted[:n], wanted)
        errors = class_errors(features, labels, scored, classes)
    else:
        numbers, known, asked = _numbers(variable), fitted[:n] >= 0, wanted >= 0
        errors = np.zeros((2, len(wanted)))
        if known.any():
            errors[:, asked] = number_errors(
                features[known], numbers[fitted[:n][known]], scored[asked], numbers[wanted[asked]]
            )
    n_choice = len(fitted) - n
    return explained(errors[:, :n_choice]), errors[:, n_choice:]


def _numbers(variable: Variable) -> np.ndarray:
    return np.array([float(value) for value in variable.values])


def _classes(fitted: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes that occur, from 0 on, undefined among them."""
    labels = np.unique(np.concatenate([fitted, codes]), return_inverse=True)[1]
    return labels[: len(fitted)], labels[len(fitted) :]
