"""Tables, scores, names and numbers that the sentences of the findings share."""

from collections.abc import Sequence

import pandas as pd

from rasplens.compare.axes import AxisName
from rasplens.compare.comparison import Comparison

CLEARLY = 0.1
"""Smallest distance above the best control that counts as clearly above it."""


def table(comparison: Comparison, name: str) -> pd.DataFrame:
    """A table of a comparison; one without rows or columns where there is none."""
    return comparison.tables.get(name, pd.DataFrame())


def axis_sentence(comparison: Comparison, name: AxisName) -> str:
    """The score of an axis with its interval, or why it has none."""
    axis = comparison.axis(name)
    if not axis.has_score:
        return f"{name.capitalize()}: no score, {axis.note}."
    interval = f"95 % interval {axis.low:.2f} to {axis.high:.2f}"
    return f"{name.capitalize()}: {axis.score:.2f} of 1 ({interval}; 0 is what the controls reach)."


def quoted(found: Sequence[str]) -> str:
    """Names in quotes, with commas."""
    return ", ".join(repr(name) for name in found)


def p_value(value: float) -> str:
    """A p-value to three digits."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"
