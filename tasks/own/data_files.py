"""Tasks from data: a file with a line for each input."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError
from rasplens.tasks.own.from_inputs import task_from_inputs
from rasplens.tasks.own.padding import Side
from rasplens.tasks.readout import Readout
from rasplens.tasks.task import Task

HELD_OUT = ("test", "held_out", "held-out", "valid", "validation", "eval")
"""Values of `split` for an input that is not trained on."""

TRAINED = ("train", "training")

NO_ANSWER = "_"
"""The word in a `.csv` for a position where no answer is read."""

LONGEST_NUMBER = 18
"""The longest word that is read as a number, in characters."""

ENDINGS = (".jsonl", ".csv")
"""The kinds of data files that are read."""


def task_from_data(
    path: str | Path, *, causal: bool = False, pad: Side = "right", readout: Readout | None = None
) -> Task:
    """The task of a data file.

    A line of `.jsonl` is an object with `tokens` (a list, or a text with spaces), `answers` (as for
    `task_from_inputs`; or, where `tokens` is a text, a text with a word for each) and perhaps `split`: train or
    test. A `.csv` has columns of these names; what looks like a number is one. No answer is read where it is null,
    or `_` in a `.csv`.

    Args:
        path: The file; its name without ending is the task's.
        causal: Whether positions see only the past.
        readout: As for `task_from_inputs`; by default "labels" where an answer is itself a list, else "label".
        pad: Where inputs that are shorter than others are filled up: on the "right", the "left" or "both" sides.

    Raises:
        RaspLensError: If the file cannot be read, or its inputs and answers make no task; with the line.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise RaspLensError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RaspLensError(f"{path} cannot be read as text: {type(error).__name__}.") from None
    if path.suffix not in ENDINGS:
        raise RaspLensError(f"{path} is not a data file: its name must end in {' or '.join(ENDINGS)}.")
    rows = _json_lines(path, text) if path.suffix == ".jsonl" else _csv_lines(path, text)
    if not rows:
        raise RaspLensError(f"{path} has no inputs.")
    splits = [split for _, _, split in rows]
    held_out = None if not any(splits) else [_is_held_out(path, i, split) for i, split in enumerate(splits, 1)]
    inputs, answers = [tokens for tokens, _, _ in rows], [answer for _, answer, _ in rows]
    if readout is None:
        is_several = any(isinstance(one, list) for answer in answers if isinstance(answer, list) for one in answer)
        readout = "labels" if is_several else "label"
    return task_from_inputs(path.stem, inputs, answers, held_out=held_out, causal=causal, pad=pad, readout=readout)


Row = tuple[list[Value], Any, str]


def _json_lines(path: Path, text: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line, parse_constant=_refused)
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", str(error))
            if "integer string conversion" in why:
                why = "a number has too many digits"
            raise RaspLensError(f"{path}, line {number}: invalid JSON ({why}).") from None
        if not isinstance(found, dict) or not {"tokens", "answers"} <= set(found):
            keys = ", ".join(f"`{key}`" for key in found) if isinstance(found, dict) else ""
            has = f"this one has {keys or 'nothing'}" if isinstance(found, dict) else f"got {type(found).__name__}"
            raise RaspLensError(
                f"{path}, line {number}: an input must be an object with `tokens` and `answers`; {has}."
            )
        tokens = found["tokens"].split() if isinstance(found["tokens"], str) else found["tokens"]
        if not isinstance(tokens, list) or not all(isinstance(token, str | int | float) for token in tokens):
            raise RaspLensError(
                f"{path}, line {number}: `tokens` must be a string, or a list of strings and numbers."
            )
        answers = found["answers"]
        if isinstance(found["tokens"], str) and isinstance(answers, str):  # a text for a text
            answers = [None if word == NO_ANSWER else word for word in answers.split()]
        rows.append((tokens, answers, str(found.get("split") or "")))
    return rows


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not allowed")


def _csv_lines(path: Path, text: str) -> list[Row]:
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        names, lines = reader.fieldnames or (), list(reader)
    except csv.Error as error:
        raise RaspLensError(f"{path} is not a valid table: {error}.") from None
    if not {"tokens", "answers"} <= set(names):
        has = ", ".join(map(repr, names)) or "none"
        raise RaspLensError(f"{path} must have columns `tokens` and `answers`, separated by commas; got {has}.")
    rows = []
    for number, line in enumerate(lines, 2):
        if line["tokens"] is None or line["answers"] is None:
            raise RaspLensError(f"{path}, line {number}: it has fewer columns than the first line.")
        answers = [None if word == NO_ANSWER else _value(word) for word in line["answers"].split()]
        rows.append(
            ([_value(word) for word in line["tokens"].split()], answers, (line.get("split") or "").strip())
        )
    return rows


def _value(word: str) -> Value:
    """A number, where it is written as Python writes it: 7 and 0.5 are numbers, 007 and 1e3 are words."""
    for kind in (int, float):
        try:
            number = kind(word) if len(word) <= LONGEST_NUMBER else None
        except ValueError:
            continue
        if number is not None and str(number) == word and math.isfinite(number):
            return number
    return word


def _is_held_out(path: Path, number: int, split: str) -> bool:
    if split.lower() not in (*HELD_OUT, *TRAINED):
        raise RaspLensError(f"{path}, input {number}: `split` must be train or test; got {split!r}.")
    return split.lower() in HELD_OUT
