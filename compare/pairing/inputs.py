"""On which of a task's inputs two models are compared: such as it draws, and some for every answer that is rare.

A program that says True of one input in a thousand is nearly right if it never says so. On inputs as the task
draws them, nothing would tell. So inputs with rare answers stand behind those that are drawn, and are asked
about too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compile import CompiledModel
from rasplens.compile.ir import UNDEFINED
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.tasks import Task
from rasplens.tasks.task import Ids

ENOUGH = 12
"""Inputs that are sought for each answer: enough to establish a claim."""

MOST_RARE = 1 / 4
"""Inputs with rare answers that are appended, at most, as a share of the inputs drawn."""

DRAWN = 16_384
"""Inputs that are searched for rare answers."""

RARE = 0.2
"""An answer is rare if its frequency is below this share of the mean frequency of answers."""

FEW = 512
"""A task with at most this many different inputs is scored on all of them."""

DRAWS_OF_EACH = 24
"""Draws per input: a task has few inputs if the second half of the draws gives nothing new."""

PROBED = 2_000
"""Draws without any repetition that show a task to have many inputs."""

LEAST_HELD_OUT = 40
"""If a task has few inputs in all and holds out fewer than this, models are compared on all inputs."""

LEAST_DEFINED = 10
"""With fewer out-of-distribution inputs on which a program is defined, none are used."""


@dataclass(frozen=True, eq=False)
class DrawnInputs:
    """Inputs of a task.

    Attributes:
        ids: First those that are drawn, then some with rare answers.
        n_drawn: How many are as the task draws them.
    """

    ids: Ids
    n_drawn: int


def all_inputs(task: Task, most: int = FEW) -> Ids | None:
    """All inputs of a task that has only a few, the held-out ones first; None of others.

    Args:
        task: Whose inputs.
        most: So many are few.
    """
    rng = np.random.default_rng(0)
    # Of fewer than some 100,000 inputs one would be drawn twice: most tasks need no more than these.
    if most > PROBED and len(np.unique(task.draw(np.random.default_rng(1), PROBED), axis=0)) == PROBED:
        return None
    drawn = np.concatenate([task.held_out[: 2 * most], task.draw(rng, 2 * most)])
    if (n := len(np.unique(drawn, axis=0))) > most:
        return None
    drawn = np.concatenate([drawn, task.draw(rng, DRAWS_OF_EACH * n)])
    different, first = np.unique(drawn, axis=0, return_index=True)
    if len(different) > most or first.max() > len(drawn) // 2:
        return None
    return drawn[np.sort(first)]


def is_every_sequence(task: Task, ids: Ids) -> bool:
    """Whether different inputs are all sequences that there are of a task's tokens."""
    return len(ids) == len(task.vocab) ** task.n_ctx


def inputs_in_words(task: Task, ids: Ids) -> str:
    """All inputs in words. That a task has no others than were drawn is hardly in doubt, but no proof."""
    return "inputs" if is_every_sequence(task, ids) else "inputs that were drawn"


def enough_held_out(task: Task) -> bool:
    """Whether a model can be scored on the task's held-out inputs alone."""
    return len(task.held_out) >= LEAST_HELD_OUT


def scored_inputs(task: Task, program: SOp, n: int, rng: np.random.Generator) -> DrawnInputs:
    """Held-out inputs to score on: those that are drawn, and some with rare answers behind them.

    Args:
        task: Whose inputs.
        program: Whose answers.
        n: How many as the task draws them, at most.
        rng: Of the choice.
    """
    everything = None if enough_held_out(task) else all_inputs(task)
    pool = task.held_out if everything is None else everything
    rows = rng.permutation(len(pool))
    drawn, left = pool[rows[:n]], pool[rows[n:]]

    def others() -> Ids:
        more = task.draw(rng, DRAWN)
        return np.concatenate([left, more[task.is_held_out(more)]])

    return _with_rare(task, program, drawn, others)


def fitting_inputs(task: Task, program: SOp, n: int, rng: np.random.Generator) -> DrawnInputs:
    """Inputs to fit and to choose on, none of them held out; see `scored_inputs`."""
    drawn = task.sample(rng, n)
    return _with_rare(task, program, drawn, lambda: task.sample(rng, DRAWN))


def defined_inputs(compiled: CompiledModel, task: Task, ids: np.ndarray) -> np.ndarray:
    """The inputs on which the program is defined where it answers, or held-out ones if there are hardly any."""
    codes, is_known = BatchInterpreter(compiled.program, task.vocab, task.visible).where_defined(ids)
    answers_fail = ~is_known[:, list(task.loss_positions)].all(axis=1)
    kept = ids[~answers_fail & (codes != UNDEFINED).any(axis=1)]
    return kept if len(kept) >= LEAST_DEFINED else task.held_out[: len(ids)]


def balance(codes: Int[np.ndarray, "input answer"]) -> Float[np.ndarray, " input"] | None:
    """With which probability each input is drawn: half alike, and half so that every answer comes as often.

    Args:
        codes: The program's answers; below 0 where there is none.

    Returns:
        None if no answer is rare: all inputs alike.
    """
    known = codes >= 0
    values, places, counts = np.unique(codes[known], return_inverse=True, return_counts=True)
    if not len(values) or counts.min() >= RARE * counts.mean():
        return None
    weights = np.zeros(codes.shape)
    weights[known] = 1 / counts[places] / len(values)
    return np.asarray(0.5 / len(codes) + 0.5 * weights.sum(axis=1))


def balanced(
    shares: Float[np.ndarray, " input"] | None, inputs: Int[np.ndarray, " some"], n: int, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Places among some inputs, drawn as `balance` says."""
    share = None if shares is None or not len(inputs) else shares[inputs] / shares[inputs].sum()
    return rng.choice(len(inputs), n, p=share)


def _with_rare(
    task: Task, program: SOp, drawn: Int[np.ndarray, "drawn pos"], others: Callable[[], Ids]
) -> DrawnInputs:
    """Inputs, and behind them others with answers that hardly any of them has."""
    said, most = task.answers(program, drawn), int(MOST_RARE * len(drawn))
    counts = np.bincount(said[said >= 0], minlength=len(task.outputs))
    if (counts >= ENOUGH).all():
        return DrawnInputs(drawn, len(drawn))
    known = {row.tobytes() for row in drawn}
    pool = np.unique(others(), axis=0)
    pool = pool[[row.tobytes() not in known for row in pool.astype(drawn.dtype)]]
    has = _has(task.answers(program, pool), len(task.outputs))
    taken: list[int] = []
    for code in np.argsort(counts, kind="stable"):
        lacking = ENOUGH - counts[code] - int(has[taken, code].sum())
        found = [row for row in np.flatnonzero(has[:, code]).tolist() if row not in taken]
        taken += found[: max(0, min(lacking, most - len(taken)))]
    return DrawnInputs(np.concatenate([drawn, pool[taken]]), len(drawn))


def _has(said: Int[np.ndarray, "input answer"], n_codes: int) -> Bool[np.ndarray, "input code"]:
    has = np.zeros((len(said), n_codes), dtype=bool)
    rows, places = np.nonzero(said >= 0)
    has[rows, said[rows, places]] = True
    return has
