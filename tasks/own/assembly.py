"""A task from what a user says of it: tokens, how an input is drawn, and its right answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.values import VALUES, is_value, plain, value_key
from rasplens.errors import RaspLensError
from rasplens.model import bidirectional_mask, causal_mask
from rasplens.tasks.readout import Readout, ordered_labels
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs
from rasplens.tasks.task import NO_ANSWER, NOT_ASKED, Ids, Task

N_HELD_OUT = 1_000

N_LOOKED_AT = 2_000
"""The number of inputs drawn to find the tokens and answers that occur."""


@dataclass(frozen=True, eq=False)
class AnswerKey:
    """The questions on inputs and their right answers.

    Attributes:
        places: Of an input, the positions at which answers are read.
        answers: The right answers there; None where they are not known.
    """

    places: Callable[[list[Value]], Sequence[int]]
    answers: Callable[[list[Value]], Sequence[Value] | None]


@dataclass(frozen=True, eq=False)
class TaskSettings:
    """The settings of a task, however its inputs and answers are given.

    Attributes:
        name: For people and files.
        outputs: The possible answers; None: those that occur.
        causal: Whether positions see only the past.
        held_out: Inputs that are never trained on; None for one in five, by a hash.
        programs: Programs that solve the task.
        padding: The token that fills shorter inputs up; None if no input is padded.
        readout: How logits give an answer.
    """

    name: str
    outputs: Sequence[Value] | None
    causal: bool
    held_out: Sequence[Sequence[Value]] | None
    programs: Mapping[str, SOp]
    padding: Value
    readout: Readout


@dataclass(frozen=True, eq=False)
class _Codes:
    """Tokens as ids, and what is asked of inputs given as such."""

    vocab: tuple[Value, ...]
    questions: AnswerKey

    def ids(self, name: str, sequences: Sequence[Sequence[Value]]) -> Ids:
        known = {value_key(token): i for i, token in enumerate(self.vocab)}
        for tokens in sequences:
            if unknown := [token for token in tokens if value_key(token) not in known]:
                raise RaspLensError(f"Token {unknown[0]!r} of an input of {name!r} is not among its tokens.")
        return np.array([[known[value_key(token)] for token in tokens] for tokens in sequences])

    def tokens(self, row: Sequence[int]) -> list[Value]:
        return [self.vocab[i] for i in row]

    def places(self, row: Sequence[int]) -> list[int]:
        return list(self.questions.places(self.tokens(row)))

    def answers(self, row: Sequence[int]) -> Sequence[Value] | None:
        return self.questions.answers(self.tokens(row))


def assemble(
    settings: TaskSettings,
    vocab: tuple[Value, ...],
    positions: tuple[str, ...],
    one: Callable[[np.random.Generator], list[Value]],
    questions: AnswerKey,
    all_inputs: Sequence[Sequence[Value]] | None = None,
) -> Task:
    """A task.

    Args:
        settings: Its settings.
        vocab: The tokens.
        positions: A printable name for each position.
        one: Draws an input.
        questions: Where answers are read, and what is right there.
        all_inputs: All inputs, if there are only these.

    Raises:
        RaspLensError: If nothing is left to train or to evaluate on, or an answer is not among the outputs.
    """
    name, padding = settings.name, settings.padding
    codes, n = _Codes(vocab, questions), len(positions)

    def draw(rng: np.random.Generator, count: int) -> Ids:
        return codes.ids(name, [one(rng) for _ in range(count)])

    def content(ids: Ids) -> Ids:
        """An input wherever it is padded."""
        if padding is None:
            return ids
        return np.take_along_axis(ids, np.argsort(ids == pad_id, axis=1, kind="stable"), axis=1)

    pad_id = next((i for i, token in enumerate(vocab) if padding is not None and token == padding), -1)
    if settings.held_out is None:
        is_held_out = lambda ids: held_out_by_hash(content(ids))  # noqa: E731
        if all_inputs is None:
            kept = held_out_inputs(draw, is_held_out, N_HELD_OUT)
        else:
            every = codes.ids(name, all_inputs)
            kept = every[is_held_out(every)]
    else:
        kept = codes.ids(name, settings.held_out)
        chosen = {tuple(row) for row in content(kept).tolist()}
        is_held_out = lambda ids: np.array([tuple(row) in chosen for row in content(ids).tolist()], dtype=bool)  # noqa: E731
    _check_split(name, kept, is_held_out, draw if all_inputs is None else None, all_inputs, codes)
    seen = kept if all_inputs is None else codes.ids(name, all_inputs)
    if all_inputs is None:
        seen = np.concatenate([kept, draw(np.random.default_rng(1), N_LOOKED_AT)])
    read = [codes.places(row) for row in seen.tolist()]
    places = tuple(sorted({place for row in read for place in row}))
    if not all(read):
        raise RaspLensError(f"No answer is read on the input {codes.tokens(seen[read.index([])])} of {name!r}.")
    given = tuple(settings.outputs) if settings.outputs is not None else _outputs(codes, seen, settings.readout)
    code_of = {value_key(value): code for code, value in enumerate(given)}

    def coded(row: tuple[int, ...]) -> list[int]:
        """The codes of the right answers at all places, `NO_ANSWER` or what else stands for them."""
        found = codes.answers(row)
        if found is None:
            return [NO_ANSWER] * len(places)
        if strange := [answer for answer in found if value_key(answer) not in code_of]:
            raise RaspLensError(
                f"The answer {strange[0]!r} of the task {name!r} on {codes.tokens(row)} is not among its outputs. "
                "List all `outputs`."
            )
        by_place = dict(zip(codes.places(row), (code_of[value_key(answer)] for answer in found), strict=True))
        if unread := by_place.keys() - set(places):
            raise RaspLensError(
                f"An answer of the task {name!r} on {codes.tokens(row)} is read at position {min(unread)}, where "
                f"none of {N_LOOKED_AT:,} drawn inputs has one. Draw such inputs more often."
            )
        return [by_place.get(place, NOT_ASKED) for place in places]

    def asks(row: tuple[int, ...]) -> list[bool]:
        here = set(codes.places(row))
        return [place in here for place in places]

    target = _remembered(coded, len(places), int)
    asked = None if all(len(row) == len(places) for row in read) else _remembered(asks, len(places), bool)

    return Task(
        name=name,
        vocab=vocab,
        outputs=given,
        positions=positions,
        mask=lambda n_layers: (causal_mask if settings.causal else bidirectional_mask)(n_layers, n),
        draw=draw,
        is_held_out=is_held_out,
        target=target,
        loss_positions=places,
        held_out=kept,
        programs=dict(settings.programs),
        padding=padding,
        asked=asked,
        readout=settings.readout,
    )


def _is_several(answer: Value) -> bool:
    return isinstance(answer, tuple | list | set | frozenset)


def _remembered(of: Callable[[tuple[int, ...]], list], width: int, kind: type) -> Callable[[Ids], np.ndarray]:
    """Return a function for what is said of each input, `[input, width]`, which asks once for each of them."""
    known: dict[tuple[int, ...], list] = {}

    def remembered(ids: Ids) -> np.ndarray:
        rows = list(map(tuple, ids.tolist()))
        known.update({row: of(row) for row in set(rows) - set(known)})
        return np.array([known[row] for row in rows], dtype=kind).reshape(len(ids), width)

    return remembered


def _check_split(
    name: str,
    kept: Ids,
    is_held_out: Callable[[Ids], np.ndarray],
    draw: Callable[[np.random.Generator, int], Ids] | None,
    all_inputs: Sequence[Sequence[Value]] | None,
    codes: _Codes,
) -> None:
    if not len(kept):
        raise RaspLensError(f"No input of the task {name!r} is held out: none is left to evaluate on. Give more.")
    some = draw(np.random.default_rng(0), 200) if draw is not None else codes.ids(name, all_inputs or [])
    if is_held_out(some).all():
        raise RaspLensError(f"All inputs of the task {name!r} are held out: none is left to train on. Give more.")


def _outputs(codes: _Codes, seen: Ids, readout: Readout) -> tuple[Value, ...]:
    found = in_order(answer for row in seen.tolist() for answer in codes.answers(row) or ())
    if readout != "label":
        return found
    are_tokens = {value_key(answer) for answer in found} <= {value_key(token) for token in codes.vocab}
    return codes.vocab if are_tokens else found


def checked(name: str, answer: Any, readout: Readout) -> Value:
    """An answer as a value, several labels in order.

    Raises:
        RaspLensError: If it is none.
    """
    if readout == "labels":
        return ordered_labels(
            checked(name, one, "label") for one in (answer if _is_several(answer) else (answer,))
        )
    if is_value(found := plain(answer)):
        return found
    several = ' For several labels at once, use readout="labels".' if _is_several(answer) else ""
    raise RaspLensError(f"An answer of the task {name!r} must be {VALUES}; got {str(answer)[:40]}.{several}")


def in_order(values: Any) -> tuple[Value, ...]:
    """The different values: in order where they have one, else as they come."""
    found = list({value_key(value): plain(value) for value in values}.values())
    try:
        return tuple(sorted(found)) if len({isinstance(value, str) for value in found}) == 1 else tuple(found)
    except TypeError:
        return tuple(found)


def listed(answer: Any) -> list[Value]:
    """A list as it is, a single answer as a list of one."""
    return list(answer) if isinstance(answer, list | np.ndarray) else [answer]


def key_of(tokens: Sequence[Value]) -> tuple[Any, ...]:
    """Return a key that tells a sequence from others: 1 is not True."""
    return tuple(map(value_key, tokens))
