"""What rows and columns of figures are called: positions, heads and hook points."""

import pandas as pd

from rasplens.compare.comparison import Comparison


def position_names(comparison: Comparison) -> tuple[str, ...]:
    """The names of the task's positions; their numbers for a comparison that was loaded."""
    if comparison.pairing is not None:
        return comparison.pairing.task.positions
    used = [
        frame[column].max()
        for frame in comparison.tables.values()
        for column in ("position", "query", "key")
        if column in frame and len(frame)
    ]
    return tuple(map(str, range(int(max(used, default=-1)) + 1)))


def head_names(frame: pd.DataFrame) -> list[str]:
    """The heads of a table, such as L0H1."""
    return [f"L{layer}H{head}" for layer, head in zip(frame["layer"], frame["head"], strict=True)]


def short_point(point: str) -> str:
    """A hook point without what all of them have in common."""
    return point.removeprefix("blocks.").replace(".hook_", " ")
