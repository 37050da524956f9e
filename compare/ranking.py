"""Several comparisons of one learned model with alternative programs, ranked; or of many models, in one table."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import escape

from rasplens.compare.comparison import Comparison
from rasplens.compare.verdict.verdict import IMPLEMENTS, PARTLY, UNKNOWN

NONE = "none of these"


@dataclass(frozen=True, eq=False)
class Ranking:
    """A learned model against alternative programs, the likeliest first.

    Attributes:
        comparisons: One for each program.
        not_told_apart: Of every two programs that the model implements alike, what would tell them, in a sentence.
    """

    comparisons: tuple[Comparison, ...]
    not_told_apart: tuple[str, ...] = ()

    @property
    def best(self) -> Comparison:
        """The likeliest."""
        return self.comparisons[0]

    @property
    def verdict(self) -> str:
        """The program that the model implements, or partly does; "none of these"; or "cannot tell".

        If it implements several, these are "not told apart".
        """
        answers = {one.program: one.verdict.answer for one in self.comparisons}
        implemented = [program for program, answer in answers.items() if answer == IMPLEMENTS]
        if implemented:
            return implemented[0] if len(implemented) == 1 else f"not told apart: {', '.join(implemented)}"
        if UNKNOWN in answers.values():
            return UNKNOWN
        partly = [program for program, answer in answers.items() if answer == PARTLY]
        return f"partly {partly[0]}" if partly else NONE

    @property
    def table(self) -> pd.DataFrame:
        """One row per program; see `comparison_table`."""
        return comparison_table(self.comparisons)

    def __repr__(self) -> str:
        return "\n".join((f"<Ranking: {self.verdict}>", *map(repr, self.comparisons), *self.not_told_apart))

    def _repr_html_(self) -> str:
        return (
            f"<p><b>{escape(self.verdict)}</b></p>{self.table.to_html(index=False, float_format='{:.2f}'.format)}"
        )


def comparison_table(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """One row per comparison: task, program, learned, verdict, its levels, every axis, accuracy."""
    return pd.DataFrame(
        [
            {
                "task": one.task,
                "program": one.program,
                "learned": one.learned_origin,
                "verdict": one.verdict.answer,
                **{f"same {level}": answer for level, answer in one.verdict.levels.items()},
                **{axis.name: axis.score for axis in one.axes},
                "right": one.accuracies["learned"].token,
            }
            for one in comparisons
        ]
    )


def replicates(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """Seeds as replicates: for each program, the mean and the standard deviation over models of every axis."""
    table = comparison_table(comparisons)
    numbers = [name for name in table if table[name].dtype == np.float64]
    return table.groupby(["task", "program"], sort=False)[numbers].agg(["mean", "std", "count"])
