"""From evidence to a verdict, by a mapping that was fitted on pairs of models whose truth is known.

The mapping is fitted by `rasplens.compare.verdict.calibration.fit` and shipped as `verdict.json`, with where it
comes from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from rasplens.compare.evidence.axes import Axis, above
from rasplens.compare.evidence.interchange.accuracy import Interchange
from rasplens.compare.models.pairing import Pairing

Answer = Literal["implements", "partly", "does not", "cannot tell"]

IMPLEMENTS: Final = "implements"
PARTLY: Final = "partly"
NOT: Final = "does not"
UNKNOWN: Final = "cannot tell"

NEEDED = ("interchange", "attention", "ablation", "subspaces")
"""Without any of these axes nothing is known about how a model comes to its answers."""

RIGHT = 0.1
"""A model whose answers are no better, from an untrained one's (0) to right (1), implements nothing."""

AGREES = 0.95
"""How far answers must come, from an untrained model's (0) to the program's (1), for a model to implement it."""


@dataclass(frozen=True)
class Calibration:
    """A logistic regression from the evidence to the probability that a model implements a program.

    Attributes:
        weights: Of the lowest axis, the mean of the axes, and behaviour; none is negative.
        intercept: Its constant.
        implements: The probability from which on the verdict is "implements".
        does_not: The one below which it is "does not".
        variable: The interchange score above its controls, from which on a variable counts as implemented.
        provenance: What it was fitted on.
    """

    weights: tuple[float, ...]
    intercept: float
    implements: float
    does_not: float
    variable: float
    provenance: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibration":
        """The mapping that `to_dict` described."""
        return cls(**{**values, "weights": tuple(values["weights"])})


@dataclass(frozen=True)
class Verdict:
    """The answer of a comparison, and its probability.

    Attributes:
        answer: "implements", "partly", "does not" or "cannot tell".
        probability: P(implements): that the model implements the program, by the calibrated mapping; NaN if it
            cannot be told.
        low: The same with every axis at the lower end of its interval.
        high: The same with every axis at the upper end.
        variables: By variable between input and output, its own verdict.
        reasons: Why, in plain sentences.
    """

    answer: Answer
    probability: float
    low: float
    high: float
    variables: Mapping[str, Answer]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        sure = (
            ""
            if np.isnan(self.probability)
            else f" (P(implements) = {self.probability:.2f}, {self.low:.2f} to {self.high:.2f})"
        )
        return f"{self.answer}{sure}"


@cache
def shipped() -> Calibration:
    """The mapping that comes with the package."""
    return Calibration.from_dict(json.loads((files("rasplens.compare.verdict") / "verdict.json").read_text()))


def features(
    axes: Sequence[Axis], end: Literal["score", "low", "high"] = "score"
) -> Float[np.ndarray, "3"] | None:
    """What the mapping sees: the lowest axis, the mean of all, and behaviour; None if the axes do not suffice.

    Args:
        axes: The evidence.
        end: "score", or an end of the intervals, "low" or "high".
    """
    values = {axis.name: getattr(axis, end) for axis in axes if axis.has_score}
    if "behaviour" not in values or not any(name in values for name in NEEDED):
        return None
    scores = np.array(list(values.values()))
    return np.array([scores.min(), scores.mean(), values["behaviour"]])


def probability(calibration: Calibration, seen: Float[np.ndarray, "*pair 3"]) -> Float[np.ndarray, "*pair"]:
    """That a model implements a program, from what `features` gives."""
    return np.asarray(expit(seen @ np.array(calibration.weights) + calibration.intercept))


def verdict(
    axes: Sequence[Axis],
    interchanged: Sequence[Interchange],
    pairing: Pairing,
    calibration: Calibration | None = None,
) -> Verdict:
    """What the evidence says.

    Args:
        axes: The evidence.
        interchanged: The variables that could be tested.
        pairing: The models, for how often they are right.
        calibration: The mapping; by default the shipped one.
    """
    calibration = calibration or shipped()
    variables = {one.variable: variable_verdict(one, calibration) for one in interchanged}
    nan = float("nan")
    right = float(above(pairing.learned.right().mean(), pairing.untrained.right().mean()))
    ends = [features(axes, end) for end in ("score", "low", "high")]
    p, low, high = (nan if x is None else float(probability(calibration, x)) for x in ends)
    if right < RIGHT:
        why = f"The model's answers are hardly better than an untrained model's ({right:.2f} of the way to right)."
        return Verdict(NOT, p, low, high, variables, (why, *_reservations(pairing)))
    if np.isnan(p):
        why = "Nothing that the program does between input and output can be observed on these inputs."
        return Verdict(UNKNOWN, nan, nan, nan, variables, (why,))
    reasons = tuple(_reason(axis) for axis in sorted(axes, key=lambda axis: (not axis.has_score, axis.score)))
    reasons += _reservations(pairing)
    if p >= calibration.implements:
        behaviour = next(axis.score for axis in axes if axis.name == "behaviour")
        if behaviour < AGREES:
            why = f"The model works like the program, but agrees with its answers only {behaviour:.3f} of the way."
            return Verdict(PARTLY, p, low, high, variables, (why, *reasons))
        sure = low >= calibration.does_not
        return Verdict(IMPLEMENTS if sure else UNKNOWN, p, low, high, variables, reasons)
    if IMPLEMENTS in variables.values():
        return Verdict(PARTLY, p, low, high, variables, reasons)
    if p < calibration.does_not:
        return Verdict(NOT if high < calibration.implements else UNKNOWN, p, low, high, variables, reasons)
    return Verdict(UNKNOWN, p, low, high, variables, reasons)


def variable_verdict(one: Interchange, calibration: Calibration) -> Answer:
    """Whether a model implements one variable: its interchange, above the controls, and the active part of it."""
    score, active = (float(above(part, one.control)) for part in (one.accuracy.score, one.active))
    if min(score, active) >= calibration.variable:
        return IMPLEMENTS
    return PARTLY if score >= calibration.variable / 2 else NOT


def _reservations(pairing: Pairing) -> tuple[str, ...]:
    """What makes the evidence weaker than it looks."""
    width = pairing.learned.residual(pairing.learned.residual_points[0]).shape[-1]
    n = 0 if pairing.fitting is None else len(np.unique(pairing.fitting.ids, axis=0))
    if n >= width:
        return ()
    return (
        f"Probes and maps are fitted on {n} different inputs in {width} dimensions: held-out scores are biased "
        "downwards.",
    )


def _reason(axis: Axis) -> str:
    if not axis.has_score:
        return f"{axis.name}: no score ({axis.note})"
    return f"{axis.name} {axis.score:.2f} ({axis.low:.2f} to {axis.high:.2f}): {axis.note}"
