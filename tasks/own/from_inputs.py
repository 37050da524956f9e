"""Tasks of one's own from a list of inputs and their answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rasplens.compile.rasp import SOp, Value
from rasplens.errors import RaspLensError
from rasplens.tasks.own.assembly import assemble, in_order, key_of, listed
from rasplens.tasks.task import Task


def task_from_inputs(
    name: str,
    inputs: Sequence[Sequence[Value]],
    answers: Sequence[Any],
    *,
    held_out: Sequence[bool] | None = None,
    outputs: Sequence[Value] | None = None,
    causal: bool = False,
    programs: Mapping[str, SOp] | None = None,
) -> Task:
    """The task of a list of inputs, all of one length, with their answers.

    Args:
        name: For people and files.
        inputs: The tokens of each.
        answers: Of each input, one answer for every position, or for the last ones; a single answer is read at the
            last. Where an answer is None on every input, none is read.
        held_out: Which of them are never trained on; by default one in five, by a hash.
        outputs: The possible answers; by default those that occur.
        causal: Whether positions see only the past.
        programs: Programs that solve the task.

    Raises:
        RaspLensError: If inputs differ in length, answers do not fit, or one input has two different answers.
    """
    rows, answered = [tuple(tokens) for tokens in inputs], [listed(answer) for answer in answers]
    _check_rows(name, rows, answered)
    n, n_answers = len(rows[0]), len(answered[0])
    asked = _asked(name, answered)
    known = {key_of(row): [answer[i] for i in asked] for row, answer in zip(rows, answered, strict=True)}
    different = list({key_of(row): list(row) for row in rows}.values())

    def one(rng: np.random.Generator) -> list[Value]:
        return different[rng.integers(len(different))]

    given = None if held_out is None else [row for row, out in zip(rows, held_out, strict=True) if out]
    vocab = in_order(token for row in rows for token in row)
    places = tuple(n - n_answers + i for i in asked)
    found = in_order(answer for row in known.values() for answer in row)
    return assemble(
        name,
        vocab,
        tuple(str(i) for i in range(n)),
        one,
        lambda tokens: known.get(key_of(tokens)),
        places,
        found if outputs is None else outputs,
        causal,
        given,
        programs or {},
        all_inputs=different,
    )


def _asked(name: str, answers: list[list[Value]]) -> list[int]:
    """Which answers are read: those that are not None on every input."""
    asked = []
    for i, column in enumerate(zip(*answers, strict=True)):
        missing = [answer is None for answer in column]
        if any(missing) and not all(missing):
            at = missing.index(True)
            raise RaspLensError(
                f"Input {at + 1} of {name!r} has no answer {i + 1}, where others have one. Give one for each, "
                "such as the padding token."
            )
        if not any(missing):
            asked.append(i)
    if not asked:
        raise RaspLensError(f"All answers of the task {name!r} are None: nothing is asked.")
    return asked


def _check_rows(name: str, rows: list[tuple[Value, ...]], answers: list[list[Value]]) -> None:
    if not rows:
        raise RaspLensError(f"The task {name!r} has no inputs.")
    if len(rows) != len(answers):
        raise RaspLensError(f"The task {name!r} has {len(rows)} inputs and {len(answers)} answers.")
    first: dict[tuple[Any, ...], tuple[int, list[Value]]] = {}
    for i, (tokens, answer) in enumerate(zip(rows, answers, strict=True), 1):
        if len(tokens) != len(rows[0]) or not tokens:
            raise RaspLensError(
                f"Input {i} of {name!r} has {len(tokens)} tokens, the first one {len(rows[0])}. Pad all to one "
                "length."
            )
        if len(answer) != len(answers[0]) or not 1 <= len(answer) <= len(tokens):
            raise RaspLensError(
                f"Input {i} of {name!r} has {len(answer)} answers for {len(tokens)} tokens, the first one "
                f"{len(answers[0])}. Give as many for each: one for every position, or for the last ones."
            )
        at, known = first.setdefault(key_of(tokens), (i, answer))
        if key_of(known) != key_of(answer):
            raise RaspLensError(f"Inputs {at} and {i} of {name!r} are the same, and have different answers.")
