"""One input of a task with everybody's answers, and how it is laid out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.examples import NOTHING
from rasplens.compare.report.sentences import table

TITLES = {"token": "input", "right": "right answer", "compiled": "compiled program", "learned": "learned model"}
"""The title of each line, by the column of the table of examples."""


@dataclass(frozen=True)
class Said:
    """The text at a position, and whether it is a wrong answer."""

    text: str
    is_wrong: bool


@dataclass(frozen=True)
class Line:
    """A line of the worked input: what it is, and what is said at each position."""

    title: str
    said: tuple[Said, ...]


@dataclass(frozen=True)
class WorkedInput:
    """One input, position by position.

    Attributes:
        layout: What its positions are and where answers are read, in words.
        positions: Their names.
        lines: Tokens and answers.
    """

    layout: str
    positions: tuple[str, ...]
    lines: tuple[Line, ...]


def worked_input(comparison: Comparison) -> WorkedInput | None:
    """The first example of a comparison; None where none was kept."""
    found = table(comparison, "examples")
    if found.empty:
        return None
    first = found[found["input"] == found["input"].iloc[0]]
    lines = [
        Line(title, tuple(Said(said, column != "token" and said != right) for said, right in zip(
            first[column], first["right"], strict=True)))
        for column, title in TITLES.items()
    ]  # fmt: skip
    return WorkedInput(_layout(first), tuple(first["position"]), tuple(lines))


def _layout(example: pd.DataFrame) -> str:
    names, asked = list(example["position"]), list(example.loc[example["right"] != NOTHING, "position"])
    where = "each" if asked == names else ranges(asked)
    return f"One worked input with {len(names)} positions: {ranges(names)}. An answer is read at {where}."


def ranges(names: Sequence[str]) -> str:
    """Names in a row, numbered ones that follow each other as a range: BOS, a1 to a10, MID."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def _follows(name: str, other: str) -> bool:
    first, second = (re.fullmatch(r"(\D*)(\d+)", text) for text in (name, other))
    return bool(first and second and first[1] == second[1] and int(second[2]) == int(first[2]) + 1)
