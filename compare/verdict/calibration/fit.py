"""Calibration: the mapping from evidence to a verdict, fitted on labelled pairs and measured on others."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from rasplens import __version__
from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.axes import AXES, Axis, above
from rasplens.compare.evidence.behaviour import discriminate
from rasplens.compare.evidence.collection import collect_evidence
from rasplens.compare.models.pairing import pair
from rasplens.compare.verdict.calibration.circuits import CIRCUITS, FITTED_ON
from rasplens.compare.verdict.calibration.labelled_pairs import LabelledPair, labelled_pairs, narrowing
from rasplens.compare.verdict.verdict import Calibration, Verdict, features, probability, shipped, verdict

CONFIG = CompareConfig(n_inputs=200)
"""Of the comparison of each pair."""

PENALTY = 0.02
"""On the squared weights of the mapping: with separable pairs they would grow without end."""

IMPLEMENTS_AT_LEAST, DOES_NOT_AT_MOST = 0.8, 0.5
"""Where the verdicts begin, unless the pairs that are fitted on ask for more caution."""

Progress = Callable[[str, int], None]
"""Called with what is compared, and how many pairs are done."""


@dataclass(frozen=True)
class Observation:
    """A labelled pair and what was observed of it.

    Attributes:
        circuit: The circuit's name.
        program: The reference's name.
        kind: What the model is.
        same: Whether it implements the reference.
        axes: The evidence.
        verdict: What the shipped mapping says of it.
        variables: The interchange score of each variable, above its controls.
    """

    circuit: str
    program: str
    kind: str
    same: bool | None
    axes: tuple[Axis, ...]
    verdict: Verdict
    variables: tuple[float, ...]

    def row(self) -> dict[str, Any]:
        """A row of a table."""
        return {
            "circuit": self.circuit,
            "program": self.program,
            "model": self.kind,
            "same": self.same,
            **{axis.name: axis.score for axis in self.axes},
            "probability": self.verdict.probability,
            "verdict": self.verdict.answer,
        }


def observe(labelled: LabelledPair, seed: int = 0, config: CompareConfig = CONFIG) -> Observation:
    """The evidence on one labelled pair."""
    pairing = pair(labelled.reference, labelled.model, labelled.task, config, seed, labelled.vocabulary)
    distinguishing = discriminate(
        labelled.reference.program, labelled.alternative.program, labelled.task, seed=seed
    )
    found = collect_evidence(pairing, {labelled.alternative.output: distinguishing}, seed)
    scores = [above(one.accuracy.score, one.control) for one in found.interchanged]
    return Observation(
        labelled.circuit,
        labelled.program,
        labelled.kind,
        labelled.same,
        found.axes,
        verdict(found.axes, found.interchanged, pairing),
        tuple(float(score) for score in scores),
    )


def observations(
    circuits: Iterable[str], seed: int = 0, progress: Progress | None = None, config: CompareConfig = CONFIG
) -> list[Observation]:
    """The evidence on every labelled pair of some circuits."""
    found: list[Observation] = []
    for name in circuits:
        for labelled in labelled_pairs(CIRCUITS[name], seed):
            if progress is not None:
                progress(f"{labelled.program}: {labelled.kind}", len(found))
            found.append(observe(labelled, seed, config))
    return found


def fading(circuits: Iterable[str], seed: int = 0) -> list[Observation]:
    """The evidence on programs that are compressed more and more."""
    return [observe(labelled, seed) for name in circuits for labelled in narrowing(CIRCUITS[name], seed)]


def calibrate(
    circuits: Sequence[str] = FITTED_ON, seed: int = 0, progress: Progress | None = None
) -> tuple[Calibration, pd.DataFrame]:
    """The mapping from evidence to the verdict, fitted on the labelled calibration set.

    Args:
        circuits: Of `CIRCUITS`.
        seed: Of everything random.
        progress: Called as each pair begins.

    Returns:
        The mapping, and the pairs that it was fitted on: see `Observation.row`.
    """
    found = observations(circuits, seed, progress)
    return fit(found, {"circuits": list(circuits), "seed": seed}), table(found)


def fit(found: Sequence[Observation], origin: dict[str, Any]) -> Calibration:
    """A logistic regression with weights that are not negative, and the probabilities at which verdicts begin.

    Raises:
        ValueError: If pairs of one kind are missing.
    """
    seen = [(features(one.axes), one) for one in found]
    usable = [(np.array(x), one) for x, one in seen if x is not None]
    same = np.array([one.same for _, one in usable])
    if len(set(same.tolist())) < 2:
        raise ValueError("A calibration needs pairs that are known to be the same, and others known to differ.")
    x = np.stack([row for row, _ in usable])
    balance = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())

    def loss(parameters: np.ndarray) -> float:
        p = np.clip(expit(x @ parameters[:-1] + parameters[-1]), 1e-9, 1 - 1e-9)
        return float(
            -(balance * np.where(same, np.log(p), np.log(1 - p))).sum()
            + PENALTY * 0.01 * (parameters[:-1] ** 2).sum()
        )

    bounds = [*[(0.0, None)] * x.shape[1], (None, None)]
    best = minimize(loss, np.zeros(x.shape[1] + 1), bounds=bounds, method="L-BFGS-B").x
    p = expit(x @ best[:-1] + best[-1])
    highest, lowest = p[~same].max(), p[same].min()
    implemented = [score for _, one in usable if one.same for score in one.variables] or [1.0]
    controls = [
        score
        for _, one in usable
        if one.kind in ("untrained", "trained on shuffled answers")
        for score in one.variables
    ]
    return Calibration(
        weights=tuple(float(weight) for weight in best[:-1]),
        intercept=float(best[-1]),
        implements=float(max(IMPLEMENTS_AT_LEAST, _middle(highest, lowest))),
        does_not=float(min(DOES_NOT_AT_MOST, lowest)),
        variable=float((np.quantile(implemented, 0.05) + np.quantile(controls or [0.0], 0.95)) / 2),
        provenance={
            **origin,
            "rasplens": __version__,
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "pairs": len(usable),
        },
    )


def _middle(highest: float, lowest: float) -> float:
    """Between the likeliest of the different pairs and the least likely of the same ones, in log-odds."""
    return float(expit((logit(np.clip(highest, 1e-6, 1 - 1e-6)) + logit(np.clip(lowest, 1e-6, 1 - 1e-6))) / 2))


def table(found: Iterable[Observation]) -> pd.DataFrame:
    """One row per labelled pair."""
    return pd.DataFrame([one.row() for one in found])


def measures(found: Sequence[Observation]) -> dict[str, float]:
    """How the shipped mapping does on labelled pairs.

    Returns:
        auc (ROC, of the probability), false_implements (share of the different pairs that are said to implement),
        recognised (share of the same ones), and for every axis its own auc.
    """
    calibration = shipped()
    same = np.array([one.same for one in found])
    seen = [features(one.axes) for one in found]
    p = np.array([0.5 if x is None else float(probability(calibration, x)) for x in seen])
    said = np.array([one.verdict.answer == "implements" for one in found])
    result = {
        "auc": float(roc_auc_score(same, p)),
        "false_implements": float(said[~same].mean()),
        "recognised": float(said[same].mean()),
    }
    for name in AXES:
        scores = np.array([next(axis.score for axis in one.axes if axis.name == name) for one in found])
        known = ~np.isnan(scores)
        if len(set(same[known].tolist())) == 2:
            result[f"auc_{name}"] = float(roc_auc_score(same[known], scores[known]))
    return result


def invariance(found: Sequence[Observation]) -> pd.DataFrame:
    """How far every axis of a disguised model is from that of the compiled model that it is a disguise of.

    Returns:
        One row per reference and model (the program itself, or its alternative): program, model, and the axes.
    """
    by_kind = {(one.program, one.kind): one for one in found}
    rows: list[dict[str, object]] = []
    for (program, kind), one in by_kind.items():
        bare = {"disguised": "itself", "alternative, disguised": "alternative, itself"}.get(kind)
        if bare is not None:
            own = {axis.name: axis.score for axis in by_kind[program, bare].axes}
            changes: dict[str, Any] = {axis.name: abs(axis.score - own[axis.name]) for axis in one.axes}
            rows.append({"program": program, "model": kind, **changes})
    return pd.DataFrame(rows)
