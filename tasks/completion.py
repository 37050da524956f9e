"""Completions of a prompt by a model, token by token."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from rasplens.compile.rasp.values import value_key
from rasplens.errors import RaspLensError
from rasplens.model import Transformer
from rasplens.tasks.task import NO_ANSWER, Accuracy, Ids, Task, accuracy_of

Codes = Int[np.ndarray, "batch loss_pos"]


def complete(
    model: Transformer, prompts: Int[np.ndarray, "batch prompt"], length: int
) -> Int[np.ndarray, "batch pos"]:
    """Prompts continued greedily to a length: each next token is the one with the highest logit.

    Raises:
        RaspLensError: If the length exceeds the model's context, or logits do not stand for tokens.
    """
    if length > model.config.n_ctx:
        raise RaspLensError(f"The model has {model.config.n_ctx} positions; {length} were asked for.")
    if model.config.d_vocab_out > model.config.d_vocab:
        raise RaspLensError(
            f"The model cannot continue a prompt: it has {model.config.d_vocab_out} logits for "
            f"{model.config.d_vocab} tokens."
        )
    written = np.asarray(prompts)
    while written.shape[1] < length:
        written = np.concatenate([written, model(written)[:, -1:].argmax(axis=-1)], axis=1)
    return written


def is_generated(task: Task) -> bool:
    """Whether a task's answers are its next tokens, so that a model can write them one after the other."""
    if (_token_ids(task) < 0).any():
        return False
    within = [i for i, position in enumerate(task.loss_positions) if position + 1 < task.n_ctx]
    asked, targets = (of(task.held_out)[:, within] for of in (task.is_asked, task.target))
    following = task.held_out[:, [task.loss_positions[i] + 1 for i in within]]
    return len(within) > 1 and bool((_token_ids(task)[targets] == following)[asked].all())


def generated_answers(task: Task, answers: Callable[[Ids], Codes], ids: Ids) -> Codes:
    """A model's answers when it reads its own: every answer is put in as the token behind it before the next.

    All answers of an input are put in at once, and asked for again until they stay. Where positions see only
    those before, the first answer stays from the beginning, the second from when the first does, and so on: what
    all come to is what they are one after the other, and a model that is mostly right is asked a few times only.
    Where it has no answer there is no token to go on with: it has none from there on.

    Args:
        task: Whose answers are next tokens.
        answers: The model's answers to inputs, all at once.
        ids: Inputs, of which the tokens behind the first answer's position are written anew.

    Raises:
        RaspLensError: If the task's answers are no next tokens.
    """
    if not is_generated(task):
        raise RaspLensError(f"The answers of {task.name!r} are not its next tokens, so nothing can be generated.")
    order = np.argsort(task.loss_positions)
    behind = np.array(task.loss_positions)[order] + 1
    token_of, written, asked = _token_ids(task), np.array(ids), task.is_asked(ids)[:, order]
    found, rows = np.full(asked.shape, NO_ANSWER), np.arange(len(ids))
    for _ in order:
        found[rows] = answers(written[rows])[:, order]
        is_token = asked[rows] & (found[rows] != NO_ANSWER) & (behind < task.n_ctx)
        before = written[rows]
        row, place = np.nonzero(is_token)
        written[rows[row], behind[place]] = token_of[found[rows[row], place]]
        rows = rows[(written[rows] != before).any(axis=1)]
        if not len(rows):
            break
    ended = np.logical_or.accumulate(asked & (found == NO_ANSWER), axis=1)
    return np.where(ended, NO_ANSWER, found)[:, np.argsort(order)]


def generated_accuracy(task: Task, answers: Callable[[Ids], Codes], ids: Ids | None = None) -> Accuracy:
    """How often a model is right when it reads its own answers; `task.accuracy` lets it read the right ones.

    Args:
        task: Whose answers are next tokens.
        answers: The model's answers to inputs, such as `lambda ids: task.answers(model, ids)`.
        ids: The inputs; by default the held-out ones.

    Raises:
        RaspLensError: If the task's answers are no next tokens.
    """
    ids = task.held_out if ids is None else ids
    return accuracy_of(task.right(generated_answers(task, answers, ids), ids))


def _token_ids(task: Task) -> Int[np.ndarray, " answer"]:
    """The id of the token that each answer is; -1 for one that is none."""
    known = {value_key(token): i for i, token in enumerate(task.vocab)}
    return np.array([known.get(value_key(answer), -1) for answer in task.outputs])
