"""Tasks of one's own from a list of inputs and their answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.values import value_key
from rasplens.errors import RaspLensError, expect
from rasplens.tasks.own.assembly import AnswerKey, TaskSettings, assemble, checked, in_order, key_of, listed
from rasplens.tasks.own.padding import PADDING, Side, check_side, padded, unpadded
from rasplens.tasks.readout import Readout
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
    pad: Side = "right",
    padding: Value = PADDING,
    readout: Readout = "label",
) -> Task:
    """The task of a list of inputs with their answers.

    Shorter inputs are filled up to the length of the longest. The padding is a token like any other: models and
    programs see it. Answers are only read at an input's own tokens.

    Args:
        name: For people and files.
        inputs: The tokens of each.
        answers: Of each input, one answer for every token, or for the last ones; a single answer is read at the
            last. Where an answer is None, none is read.
        held_out: Which of them are never trained on; by default one in five, by a hash.
        outputs: The possible answers; by default those that occur.
        causal: Whether positions see only the past.
        programs: Programs that solve the task.
        pad: Where shorter inputs are filled up: on the "right", the "left", or on "both" sides, by chance.
        padding: With which token.
        readout: How logits give an answer: the highest is its "label"; those above 0 are its "labels", several at
            once, which `answers` gives as a tuple or a set; or the only logit is a "number".

    Raises:
        RaspLensError: If answers do not fit, or one input has two different answers.
    """
    expect(name, str, "task_from_inputs takes a name first: task_from_inputs(name, inputs, answers)")
    check_side(pad)
    given_rows, answered = (
        [tuple(tokens) for tokens in inputs],
        [[None if one is None else checked(name, one, readout) for one in listed(answer)] for answer in answers],
    )
    _check_rows(name, given_rows, answered)
    n, rng = max(map(len, given_rows)), np.random.default_rng(0)
    varies = any(len(row) < n for row in given_rows)
    rows = [tuple(padded(row, n, padding, pad, rng)) for row in given_rows] if varies else given_rows
    known: dict[tuple[Any, ...], dict[int, Value]] = {}
    for own, row, answer in zip(given_rows, rows, answered, strict=True):
        first = unpadded(row, padding)[0] + len(own) - len(answer) if varies else n - len(answer)
        known[key_of(row)] = {first + i: value for i, value in enumerate(answer) if value is not None}
    different = list({key_of(row): list(row) for row in rows}.values())

    def one(rng: np.random.Generator) -> list[Value]:
        return different[rng.integers(len(different))]

    given = None if held_out is None else [row for row, out in zip(rows, held_out, strict=True) if out]
    if held_out is not None:
        _check_apart(name, given_rows, held_out)
    vocab = in_order(token for row in rows for token in row)
    found = None
    if readout == "label":
        found = in_order(answer for answers in known.values() for answer in answers.values())
    somewhere = sorted({place for answers in known.values() for place in answers})

    def places(tokens: list[Value]) -> list[int]:
        if (own := known.get(key_of(tokens))) is not None:
            return list(own)
        return [place for place in somewhere if not varies or value_key(tokens[place]) != value_key(padding)]

    def answers_of(tokens: list[Value]) -> list[Value] | None:
        own = known.get(key_of(tokens))
        return None if own is None else list(own.values())

    settings = TaskSettings(
        name=name,
        outputs=found if outputs is None else outputs,
        causal=causal,
        held_out=given,
        programs=programs or {},
        padding=padding if varies else None,
        readout=readout,
    )
    positions = tuple(str(i) for i in range(n))
    return assemble(settings, vocab, positions, one, AnswerKey(places, answers_of), different)


def _check_apart(name: str, rows: list[tuple[Value, ...]], held_out: Sequence[bool]) -> None:
    kept = {key_of(row): i for i, (row, out) in enumerate(zip(rows, held_out, strict=True), 1) if out}
    for i, (row, out) in enumerate(zip(rows, held_out, strict=True), 1):
        if not out and key_of(row) in kept:
            raise RaspLensError(
                f"Inputs {kept[key_of(row)]} and {i} of {name!r} are the same; one is held out, the other is not."
            )


def _check_rows(name: str, rows: list[tuple[Value, ...]], answers: list[list[Value]]) -> None:
    if not rows:
        raise RaspLensError(f"The task {name!r} has no inputs.")
    if len(rows) != len(answers):
        raise RaspLensError(f"The task {name!r} has {len(rows)} inputs but {len(answers)} answers.")
    first: dict[tuple[Any, ...], tuple[int, list[Value]]] = {}
    is_every = all(len(answer) == len(tokens) for tokens, answer in zip(rows, answers, strict=True))
    for i, (tokens, answer) in enumerate(zip(rows, answers, strict=True), 1):
        if not is_every and (len(answer) != len(answers[0]) or not 1 <= len(answer) <= len(tokens)):
            raise RaspLensError(
                f"Input {i} of {name!r} has {len(answer)} answers for {len(tokens)} tokens; the first input has "
                f"{len(answers[0])} for {len(rows[0])}. Give an answer for every token, or for equally many last "
                "tokens of each input; None where none is read."
            )
        if all(value is None for value in answer):
            raise RaspLensError(f"All answers of input {i} of {name!r} are None. Give at least one.")
        at, known = first.setdefault(key_of(tokens), (i, answer))
        if key_of(known) != key_of(answer):
            raise RaspLensError(f"Inputs {at} and {i} of {name!r} are the same but have different answers.")
