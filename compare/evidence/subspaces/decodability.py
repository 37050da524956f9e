"""The subspaces axis: where in the learned residual stream each variable of the program can be read off.

A linear probe finds what is present, not what is used, and a wide stream holds many things by chance;
so each score stands beside three others: the commonest value, a probe for shuffled labels, and the same
probe on an untrained model (Hewitt & Liang 2019, "Designing and Interpreting Probes with Control Tasks").
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from rasplens.compare.evidence.parallel import in_parallel
from rasplens.compare.evidence.subspaces.probes import (
    class_errors,
    explained,
    majority_share,
    number_errors,
)
from rasplens.compare.evidence.subspaces.representations import Place
from rasplens.compare.pairing.variables import varies
from rasplens.compare.study import Study
from rasplens.compile import Variable
from rasplens.compile.rasp import Encoding
from rasplens.model import random_streams

CONTROLS = ("chance", "shuffled", "untrained")

COLUMNS = ("variable", "measure", "point", "position", "choice", "score", "chance", "shuffled", "untrained")

CHOICE_SHARE = 1 / 3
"""Share of the fitting inputs that probes are not fitted on: they choose the best hook point."""


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


def decodability(study: Study, seed: int) -> Decodability:
    """Where in the learned residual stream each variable of the program can be read off."""
    shuffle = random_streams.rng(seed, "subspace decodability").permutation(study.fitting.n_inputs)
    rows = list(in_parallel(partial(_row, shuffle=shuffle), _readings(study)))
    table = pd.DataFrame([row[:-1] for row in rows], columns=list(COLUMNS))
    return Decodability(table, tuple(row[-1] for row in rows))


def best_points(table: pd.DataFrame) -> pd.DataFrame:
    """For each variable the hook point with the highest `choice`, averaged over positions, with its scores."""
    keys = ["variable", "measure", "point"]
    means = table.groupby(keys, sort=False)[[*COLUMNS[4:]]].mean().reset_index()
    best = means.loc[means.groupby("variable", sort=False)["choice"].idxmax()].reset_index(drop=True)
    best["selectivity"] = best["score"] - best[list(CONTROLS)].max(axis=1)
    return best


Stream = Float[np.ndarray, "_ d_model"]


@dataclass(frozen=True, eq=False)
class _Reading:
    """The data that probes of one variable are given at one place.

    Attributes:
        place: The variable's name, the hook point, the position.
        variable: The variable.
        fitted: Its codes on the inputs to fit on.
        codes: Its codes on the inputs to score on.
        learned: The residual stream of the learned model on both.
        untrained: That of the untrained one.
    """

    place: Place
    variable: Variable
    fitted: Int[np.ndarray, " fitted"]
    codes: Int[np.ndarray, " scored"]
    learned: list[Stream]
    untrained: list[Stream]


def _readings(study: Study) -> Iterator[_Reading]:
    parts = study.fitting, study.scored
    for name, variable in study.compiled.variables.items():
        if variable.is_auxiliary and name not in study.own_variables:
            continue  # a step of the compiler's own: nothing that a learned model should hold
        for position in study.scored.relevance.positions(name):
            fitted, codes = (part.codes[name][:, position] for part in parts)
            if not (varies(codes) and varies(fitted)):
                continue
            for point in study.learned.residual_points:
                learned, untrained = (
                    [getattr(part, side).residual(point)[:, position] for part in parts]
                    for side in ("learned", "untrained")
                )
                yield _Reading((name, point, position), variable, fitted, codes, learned, untrained)


def _row(read: _Reading, shuffle: Int[np.ndarray, " fitted"]) -> tuple:
    """A row of the table, and the errors behind its score."""
    is_number = read.variable.encoding is Encoding.NUMERICAL
    name, point, position = read.place
    choice, errors = _probed(read.variable, read.fitted, read.codes, read.learned)
    return (
        name,
        "R²" if is_number else "accuracy",
        point,
        position,
        choice,
        explained(errors),
        0.0 if is_number else majority_share(*_classes(read.fitted, read.codes)),
        explained(_probed(read.variable, read.fitted[shuffle], read.codes, read.learned)[1]),
        explained(_probed(read.variable, read.fitted, read.codes, read.untrained)[1]),
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
