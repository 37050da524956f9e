"""How a model takes a task's inputs and gives its answers: what joins two vocabularies and two layouts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, overload

import numpy as np
from jaxtyping import Float, Int

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.values import value_key
from rasplens.compile.tracr_import import TracrModel
from rasplens.compile.variable import nearest
from rasplens.errors import RaspLensError
from rasplens.tasks import Task
from rasplens.tasks.answers import behind
from rasplens.tasks.task import Ids

Padding = Literal["token", "masked", "left out"]
"""How a model takes padding: as a token like any other; hidden by a mask; or hidden, and skipped by positions."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A model's vocabulary for a task.

    Attributes:
        tokens: From inputs as the task's ids, the inputs as the model takes them, `[input, ctx]`.
        positions: The model's position of each of the task's positions; others, such as a BOS of the model's
            own, are left out throughout.
        columns: The logit of each of the task's answers, -1 for one that the model cannot give; None if it
            answers with a number or with several labels instead.
        decode: From logits `[..., logit]`, the codes of the task's answers, -1 for none; by default the answer is
            that with the largest logit.
        padding: How the model takes the task's padding. None: left out where the model's config names that token,
            else as a token.
    """

    tokens: Callable[[Ids], Int[np.ndarray, "input ctx"]]
    positions: tuple[int, ...]
    columns: Int[np.ndarray, " answer"] | None
    decode: Callable[[Float[np.ndarray, "... logit"]], Int[np.ndarray, "..."]] | None = None
    padding: Padding | None = None

    def codes(self, logits: Float[np.ndarray, "... logit"]) -> Int[np.ndarray, "..."]:
        """The codes of the task's answers that logits stand for; -1 for none."""
        if self.decode is not None:
            return self.decode(logits)
        if self.columns is None:
            raise RaspLensError("A vocabulary without columns says how logits are decoded.")
        return np.where(self.columns >= 0, logits[..., self.columns], -np.inf).argmax(axis=-1)

    def __repr__(self) -> str:
        n_answers = "answers as numbers" if self.columns is None else f"{(self.columns >= 0).sum()} answers"
        return f"<Vocabulary: {len(self.positions)} positions, {n_answers}>"


def task_vocabulary(task: Task, prefix: Sequence[int] = ()) -> Vocabulary:
    """That of a model trained on the task: its ids are the task's, and so are its answers.

    Args:
        task: The task.
        prefix: Ids that stand before every input, such as a BOS.
    """
    return Vocabulary(
        tokens=lambda ids: behind(prefix, ids),
        positions=tuple(range(len(prefix), len(prefix) + task.n_ctx)),
        columns=np.arange(len(task.outputs)) if task.readout == "label" else None,
        decode=task.codes,
    )


GivenVocabulary = Vocabulary | Callable[[Task], Vocabulary]
"""A vocabulary for a task, or what gives one for each."""


@overload
def vocabulary_of(compiled: CompiledModel | TracrModel) -> Callable[[Task], Vocabulary]: ...


@overload
def vocabulary_of(compiled: CompiledModel | TracrModel, task: Task) -> Vocabulary: ...


def vocabulary_of(compiled: CompiledModel | TracrModel, task: Task | None = None) -> GivenVocabulary:
    """That of a compiled model, and of every disguise of its weights.

    Args:
        compiled: The model, or one of Tracr's.
        task: What it is for; without one, `compare` asks for it when it knows the task.

    Raises:
        RaspLensError: If the model was compiled for shorter inputs, or for other tokens, or is no compiled one.
    """
    if not isinstance(compiled, CompiledModel | TracrModel):
        raise RaspLensError(
            f"vocabulary_of takes a compiled model, or one of from_tracr; got {type(compiled).__name__}. For "
            "other models use token_vocabulary, or leave vocabulary out if it is the task's."
        )
    if task is None:
        return lambda task: vocabulary_of(compiled, task)
    if isinstance(compiled, TracrModel):
        return _vocabulary_of_tracr(compiled, task)
    if compiled.inputs.max_len < task.n_ctx:
        raise RaspLensError(
            f"The reference was compiled for max_len={compiled.inputs.max_len}; inputs of {task.name!r} have "
            f"{task.n_ctx} tokens. Compile it with max_len={task.n_ctx}."
        )
    known = set(map(value_key, compiled.inputs.vocab))
    used = (task.vocab[i] for i in np.unique(task.held_out).tolist())
    if unknown := [token for token in used if value_key(token) not in known]:
        raise RaspLensError(
            f"The token {unknown[0]!r} of {task.name!r} is not in the vocabulary that the reference was compiled "
            "for. Compile it with the task's vocab."
        )
    output = compiled.variables[compiled.output]
    translation = task.codes_of(compiled)
    columns = None
    if output.encoding is Encoding.CATEGORICAL:
        columns = np.full(len(task.outputs), -1)
        can_say = translation[:-1] >= 0
        columns[translation[:-1][can_say]] = np.flatnonzero(can_say)
    return Vocabulary(
        tokens=lambda ids: compiled.encode(task.sequences(ids)),
        positions=tuple(range(compiled.offset, compiled.offset + task.n_ctx)),
        columns=columns,
        decode=lambda logits: translation[nearest(output, logits)[0]],
    )


def _vocabulary_of_tracr(model: TracrModel, task: Task) -> Vocabulary:
    """That of a model of Tracr's, in which its BOS stands before every input."""
    if model.output_values is None:
        raise RaspLensError(
            "Tracr's model answers with one number, but the task asks for labels. Use a categorical program."
        )
    answers = {value: code for code, value in enumerate(model.output_values)}
    return token_vocabulary(task, model.input_ids, answers, prefix=[model.input_ids[model.bos]])


def _check_ids(what: str, ids: Mapping[Value, int]) -> None:
    """Raises unless every token or answer has an id of its own."""
    first: dict[int, Value] = {}
    for value, i in ids.items():
        if not isinstance(i, int | np.integer) or isinstance(i, bool) or i < 0:
            raise RaspLensError(f"The id of the {what} {value!r} must be a whole number of at least 0; got {i!r}.")
        if i in first:
            raise RaspLensError(
                f"The {what}s {first[i]!r} and {value!r} have the same id, {i}: the model could not tell them "
                "apart. Give each its own id."
            )
        first[i] = value


def token_vocabulary(
    task: Task,
    tokens: Mapping[Value, int],
    answers: Mapping[Value, int] | None = None,
    *,
    prefix: Sequence[int] = (),
    positions: Sequence[int] | None = None,
    padding: Padding | None = None,
) -> Vocabulary:
    """That of a model with a vocabulary of its own, such as a language model.

    Args:
        task: The task.
        tokens: The model's id of every token of the task.
        answers: The logit of every answer; by default that of the token.
        prefix: Ids that stand before every input, such as a BOS.
        positions: The model's position of each of the task's positions, if they do not follow the prefix one
            by one; only positions in ascending order keep a causal model causal.
        padding: How it takes the task's padding: seen like any "token", "masked", or "left out", so that positions
            skip it too. By default left out where its config names that token as padding, else a token.

    Raises:
        RaspLensError: If a token or an answer is missing, be it the None of an undefined value that the task asks
            for; two have the same id, or one has none that could be; or the positions are not one for each.
    """
    if padding not in (None, *get_args(Padding)):
        raise RaspLensError(f"padding must be one of {', '.join(get_args(Padding))}; got {padding!r}.")
    answers = tokens if answers is None else answers
    _check_ids("token", {token: tokens[token] for token in task.vocab if token in tokens})
    _check_ids("answer", {answer: answers[answer] for answer in task.outputs if answer in answers})
    missing = [token for token in task.vocab if token not in tokens]
    asked = set(np.unique(task.target(task.held_out)).tolist())
    missing += [
        answer
        for code, answer in enumerate(task.outputs)
        if answer not in answers and (answer is not None or code in asked)
    ]
    if missing:
        raise RaspLensError(
            f"The model's vocabulary has no id for {missing[0]!r} of the task {task.name!r}. Give an id for every "
            "token and every answer, or ask for answers only where they have one."
        )
    start = len(prefix)
    places = tuple(range(start, start + task.n_ctx)) if positions is None else tuple(positions)
    if len(places) != task.n_ctx or list(places) != sorted(set(places)) or min(places) < start:
        raise RaspLensError(
            f"positions must be {task.n_ctx} different positions in ascending order, after the prefix; got "
            f"{places}."
        )
    ids_of = np.array([tokens[token] for token in task.vocab])
    columns = np.array([answers.get(answer, -1) for answer in task.outputs])
    filler = prefix[-1] if prefix else ids_of[0]

    def encode(ids: Ids) -> np.ndarray:
        rows = np.full((len(ids), places[-1] + 1), filler)
        rows[:, :start] = prefix
        rows[:, list(places)] = ids_of[ids]
        return rows

    return Vocabulary(encode, places, columns, padding=padding)
