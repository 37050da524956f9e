"""Labels of rows and columns in figures: positions, heads and hook points."""

import pandas as pd

from rasplens.compare.comparison import Comparison
from rasplens.compare.report.sentences import table


def position_names(comparison: Comparison) -> tuple[str, ...]:
    """The names of the task's positions; none for a comparison without models or examples."""
    if comparison.pairing is not None:
        return comparison.pairing.task.positions
    examples = table(comparison, "examples")
    return () if examples.empty else tuple(examples.loc[examples["input"] == 1, "position"])


def head_names(frame: pd.DataFrame) -> list[str]:
    """The heads of a table, such as L0H1."""
    return [f"L{layer}H{head}" for layer, head in zip(frame["layer"], frame["head"], strict=True)]


def short_point(point: str) -> str:
    """A hook point without what all of them have in common."""
    return point.removeprefix("blocks.").replace(".hook_", " ")
