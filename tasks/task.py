"""A task: its inputs, where the loss is read, and what is right there."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from markupsafe import Markup

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.values import VALUES, is_number, is_value, plain, value_key
from rasplens.errors import RaspLensError, expect
from rasplens.model import HasTransformer
from rasplens.tasks.answers import compiled_codes, logits, program_answers
from rasplens.tasks.readout import Readout, answer_codes, logit_table, ordered_labels

Answering = SOp | CompiledModel | HasTransformer | Callable[..., Any]
"""What has answers: a program, a model, or a torch module from token ids to logits."""

Ids = Int[np.ndarray, "batch pos"]

NO_ANSWER = -1
"""The code of an unknown or missing answer."""

NOT_ASKED = -2
"""Stands for the answer, right or given, where the task asks for none on an input."""


class Accuracy(NamedTuple):
    """Shares of right answers, each in [0, 1].

    Attributes:
        token: Of single positions.
        sequence: Of inputs on which every position is right.
    """

    token: float
    sequence: float


def marked(
    answers: Int[np.ndarray, "*batch answer"], targets: Int[np.ndarray, "*batch answer"]
) -> np.ma.MaskedArray:
    """Which answers are right; masked where none is asked, so that means and `all` leave it out.

    Where the right answer is not known, none is.
    """
    right = (answers == targets) & (targets != NO_ANSWER)
    return np.ma.masked_array(right, mask=targets == NOT_ASKED)


def accuracy_of(right: np.ma.MaskedArray) -> Accuracy:
    """The accuracy, from which answers are right: `[input, answer]`."""
    return Accuracy(float(right.mean()), float(right.all(axis=1).mean()))


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """A supervised sequence task.

    Attributes:
        name: For people and files.
        vocab: The tokens; a token's place is its id.
        outputs: The possible answers; an answer's place is the logit that stands for it.
        positions: A printable name for each position; their number is the length of an input.
        mask: From the number of layers, which positions see which: boolean `[layer, query, key]`.
        draw: From a generator and a number, that many random inputs, as ids.
        is_held_out: Of inputs, which ones are never trained on.
        target: Of inputs, the right answers (indices into `outputs`) at the loss positions; `NOT_ASKED` wherever
            `asked` says so.
        loss_positions: Where the answers are read.
        held_out: Inputs for evaluation, none of which `sample` ever gives.
        programs: RASP programs that solve the task, by name; the first is the reference.
        padding: The token that fills shorter inputs up to the length of the longest, if there is one.
        asked: Of inputs, at which loss positions an answer is read; others are neither trained on nor counted.
            None reads all.
        readout: How logits give an answer: "label", the highest of one for each of the `outputs`; "labels", where
            an output is a tuple of labels in order, all labels whose logit is above 0; "number", where outputs are
            numbers, that nearest to the only logit.
    """

    name: str
    vocab: tuple[Value, ...]
    outputs: tuple[Value, ...]
    positions: tuple[str, ...]
    mask: Callable[[int], np.ndarray]
    draw: Callable[[np.random.Generator, int], Ids]
    is_held_out: Callable[[Ids], Bool[np.ndarray, " batch"]]
    target: Callable[[Ids], Int[np.ndarray, "batch loss_pos"]]
    loss_positions: tuple[int, ...]
    held_out: Ids
    programs: Mapping[str, SOp] = field(default_factory=dict)
    padding: Value = None
    asked: Callable[[Ids], Bool[np.ndarray, "batch loss_pos"]] | None = None
    readout: Readout = "label"

    def __post_init__(self) -> None:
        for name in ("vocab", "outputs"):
            expect(getattr(self, name), Iterable, f"{name} of a task must be a tuple, such as ('a', 'b')")
        object.__setattr__(self, "vocab", tuple(map(plain, self.vocab)))
        object.__setattr__(self, "outputs", tuple(map(plain, self.outputs)))
        if strange := [value for value in (*self.vocab, *self.outputs) if not (value is None or is_value(value))]:
            raise RaspLensError(f"A token or answer of {self.name!r} must be {VALUES}; got {strange[0]!r}.")
        _ = self.logit_table  # refuses outputs that cannot be read so
        if (asked := self.asked) is not None:
            target = self.target
            object.__setattr__(self, "target", lambda ids: np.where(asked(ids), target(ids), NOT_ASKED))
        outside = [p for p in self.loss_positions if not 0 <= p < self.n_ctx]
        if outside:
            raise RaspLensError(f"Loss positions {outside} lie outside the {self.n_ctx} positions.")
        if not len(self.held_out):
            raise RaspLensError("A task needs held-out inputs to be evaluated on.")
        if not self.is_held_out(self.held_out).all():
            raise RaspLensError("`is_held_out` must be true of every input in `held_out`.")

    @property
    def n_ctx(self) -> int:
        """The length of an input."""
        return len(self.positions)

    @cached_property
    def logit_table(self) -> Float[np.ndarray, "answer logit"] | None:
        """The logits that each answer should have; None where each answer has a logit of its own."""
        return logit_table(self.readout, self.outputs)

    @property
    def n_logits(self) -> int:
        """How many logits a model for the task has."""
        return len(self.outputs) if self.logit_table is None else self.logit_table.shape[1]

    def codes(self, logits: Float[np.ndarray, "*batch logit"]) -> Int[np.ndarray, "*batch"]:
        """The answers that logits give, as indices into `outputs`; `NO_ANSWER` for other sets of labels."""
        return np.asarray(answer_codes(self.logit_table, self.readout, logits))

    @property
    def token_names(self) -> tuple[str, ...]:
        """Each token as it is printed."""
        return tuple(str(token) for token in self.vocab)

    @property
    def visible(self) -> Bool[np.ndarray, "query key"]:
        """Which positions see which in some layer: what a program for the task may use."""
        return np.logical_or.reduce(self.mask(2), axis=0)

    @cached_property
    def digest(self) -> str:
        """A hash of the held-out inputs and their answers, which tells the task from others of its name."""
        parts = [repr((self.vocab, self.outputs, self.loss_positions)).encode()]
        parts += [np.ascontiguousarray(array, dtype=np.int64).tobytes() for array in self._examples]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:12]

    @property
    def _examples(self) -> tuple[np.ndarray, np.ndarray]:
        return self.held_out, self.target(self.held_out)

    def place(self, position: int | str) -> int:
        """A position's place, from its place or its name.

        Raises:
            RaspLensError: If there is none.
        """
        if isinstance(position, str) and position in self.positions:
            return self.positions.index(position)
        if isinstance(position, int | np.integer) and 0 <= position < self.n_ctx:
            return int(position)
        raise RaspLensError(
            f"Task {self.name!r} has no position {position!r}; it has 0 to {self.n_ctx - 1}, named "
            f"{', '.join(map(repr, self.positions))}."
        )

    def sample(self, rng: np.random.Generator, n: int) -> Ids:
        """Random inputs to train on; held-out ones are drawn again."""
        ids = self.draw(rng, n)
        rejected = np.flatnonzero(self.is_held_out(ids))
        while len(rejected):
            ids[rejected] = drawn = self.draw(rng, len(rejected))
            rejected = rejected[self.is_held_out(drawn)]
        return ids

    def next_token(self) -> "Task":
        """Return the task with every token but the first as the answer at the position before it.

        Raises:
            RaspLensError: If the task's answers are no next tokens.
        """
        everywhere = tuple(range(self.n_ctx - 1))
        following = np.roll(self.held_out, -1, axis=1)[:, list(self.loss_positions)]
        if self.outputs != self.vocab or not self.right(following, self.held_out).all():
            raise RaspLensError(
                f"The answers of {self.name!r} are not its next tokens, so they cannot be read everywhere."
            )
        padding = self.vocab.index(self.padding) if self.padding is not None else len(self.vocab)
        asked = None if self.asked is None else lambda ids: (ids[:, :-1] != padding) & (ids[:, 1:] != padding)
        return replace(self, loss_positions=everywhere, target=lambda ids: ids[:, 1:], programs={}, asked=asked)

    def sequences(self, ids: Ids) -> list[list[Value]]:
        """Inputs as tokens."""
        return [[self.vocab[i] for i in row] for row in ids.tolist()]

    def ids(self, sequences: Sequence[Sequence[Value]]) -> Ids:
        """Inputs as ids.

        Raises:
            RaspLensError: If a sequence has the wrong length or a token that the task does not know.
        """
        known = {value_key(token): i for i, token in enumerate(self.vocab)}
        for tokens in sequences:
            if len(tokens) != self.n_ctx:
                raise RaspLensError(f"Inputs of {self.name!r} have {self.n_ctx} tokens; got {len(tokens)}.")
            for token in tokens:
                if value_key(token) not in known:
                    raise RaspLensError(f"Token {token!r} is not in the vocabulary of {self.name!r}.")
        return np.array([[known[value_key(token)] for token in tokens] for tokens in sequences])

    def answer_code(self, value: Value) -> int:
        """The place of an answer among `outputs`, of a number up to rounding; `NO_ANSWER` if it is none."""
        if self.readout == "labels" and isinstance(value, tuple):
            value = ordered_labels(value)
        exact = self._answer_codes.get(value_key(value), NO_ANSWER)
        if exact != NO_ANSWER or not is_number(value):
            return exact
        numbers = (
            i for i, known in enumerate(self.outputs) if is_number(known) and float in map(type, (known, value))
        )
        return next((i for i in numbers if math.isclose(self.outputs[i], value)), NO_ANSWER)

    @cached_property
    def _answer_codes(self) -> Mapping[tuple[Any, ...], int]:
        return {value_key(value): code for code, value in enumerate(self.outputs)}

    def answer_name(self, code: int) -> str:
        """An answer as it is printed: "none" where there is none, a dot where none is asked."""
        return {NO_ANSWER: "none", NOT_ASKED: "·"}.get(code) or str(self.outputs[code])

    def codes_of(self, compiled: CompiledModel) -> Int[np.ndarray, " code"]:
        """The task's answer for every code of a compiled model's result, the last for undefined."""
        values = (*compiled.variables[compiled.output].values, None)
        return np.array([self.answer_code(value) for value in values])

    def answers(self, model: Answering, ids: Ids) -> Int[np.ndarray, "batch loss_pos"]:
        """A model's answers at the loss positions, as indices into `outputs`; `NO_ANSWER` where it has none.

        Args:
            model: A RASP program (interpreted), a `CompiledModel`, a `Transformer`, anything that has one as its
                `transformer`, or a torch module from token ids to logits.
            ids: Inputs.

        Raises:
            RaspLensError: If the model's vocabulary does not fit the task.
        """
        if isinstance(model, SOp):
            values, codes = program_answers(model, self.vocab, ids, self.visible, self.loss_positions)
            return np.array([self.answer_code(value) for value in values])[codes]
        if isinstance(model, CompiledModel):
            return self.codes_of(model)[compiled_codes(model, self.sequences(ids), self.loss_positions)]
        scores = logits(model, ids, self.loss_positions)
        if scores.shape[-1] != self.n_logits:
            what = "answers" if self.readout == "label" else f"logits, read as {self.readout}"
            raise RaspLensError(
                f"The model has {scores.shape[-1]} logits; task {self.name!r} has {self.n_logits} {what}."
            )
        return self.codes(scores)

    def accuracy(self, model: Answering, ids: Ids | None = None) -> Accuracy:
        """How often a model, a compiled model or a program is right.

        Args:
            model: Anything that `answers` understands.
            ids: The inputs; by default the held-out ones.
        """
        ids = self.held_out if ids is None else ids
        return accuracy_of(self.right(self.answers(model, ids), ids))

    def is_asked(self, ids: Ids) -> Bool[np.ndarray, "batch loss_pos"]:
        """Which answers are read on each input."""
        return np.ones((len(ids), len(self.loss_positions)), dtype=bool) if self.asked is None else self.asked(ids)

    def right(self, answers: Int[np.ndarray, "batch loss_pos"], ids: Ids) -> np.ma.MaskedArray:
        """Which of a model's answers are right, `[batch, loss_pos]`; masked where none is asked."""
        return marked(answers, self.target(ids))

    def __repr__(self) -> str:
        return (
            f"<Task {self.name!r}: {self.n_ctx} positions, {len(self.vocab)} tokens, "
            f"{len(self.outputs)} answers at {len(self.loss_positions)} positions, "
            f"{len(self.held_out):,} held-out inputs; "
            f"programs: {', '.join(self.programs) or 'none'}>"
        )

    def _repr_html_(self) -> str:
        """The layout, and three inputs with their answers below the positions where these are read."""
        cells = [["position", *self.positions]]
        for ids in self.held_out[:3]:
            answers = dict(zip(self.loss_positions, self.target(ids[None])[0].tolist(), strict=True))
            cells.append(["input", *(self.token_names[i] for i in ids)])
            said = {position: self.answer_name(code) for position, code in answers.items()}
            cells.append(["answer", *(said.get(position, "·") for position in range(self.n_ctx))])
        cell, row = Markup("<td>{}</td>"), Markup("<tr>{}</tr>")
        rows = Markup("").join(row.format(Markup("").join(map(cell.format, line))) for line in cells)
        return str(Markup("<p>{}</p><table>{}</table>").format(repr(self), rows))
