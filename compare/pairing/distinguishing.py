"""Inputs that tell two programs apart: by their answers, or else by the positions that they read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from rasplens.compile import UndefinedValue, rasp, run
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.interpreter import expressions
from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.tasks import Task
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs
from rasplens.tasks.task import NO_ANSWER, Ids

N_CANDIDATES = 600
"""Number of candidates for distinguishing inputs: half the task's own, half out of distribution."""

SEVERAL = 4
"""Oversampling factor for the task's own inputs; duplicates, among them and the held-out ones, are dropped."""


@dataclass(frozen=True, eq=False)
class DistinguishingInputs:
    """Inputs that tell two programs apart.

    Attributes:
        ids: The inputs, the most distinguishing first.
        by: What differs on them: "answers", or where those agree throughout, "attention".
        difference: How much, on each: the share of answers, or of the positions read, in (0, 1].
        answers: Which of the task's answers differ on each.
        of_task: Which of them are such as the task draws; the others are out of distribution.
    """

    ids: Ids
    by: Literal["answers", "attention"]
    difference: Float[np.ndarray, " input"]
    answers: Bool[np.ndarray, "input answer"]
    of_task: Bool[np.ndarray, " input"]

    def __len__(self) -> int:
        return len(self.ids)


def discriminate(first: SOp, second: SOp, task: Task, n: int = 200, seed: int = 0) -> DistinguishingInputs:
    """Inputs of a task on which two programs differ most.

    Inputs are the task's own and out-of-distribution ones, in its layout. Where the programs give the same
    answers on all of them, the inputs are those on which they read different positions: their selectors, all
    together, at the rows that select something.

    Args:
        first: A program.
        second: Another.
        task: Where they are to be told apart.
        n: How many inputs at most; fewer if fewer differ.
        seed: Of the inputs among which they are sought.

    Raises:
        RaspLensError: If `n` is below 1.
    """
    if n < 1:
        raise RaspLensError(f"n of discriminate must be at least 1; got {n}.")
    rng = random_streams.rng(seed, "distinguishing inputs")
    half = N_CANDIDATES // 2
    # Of a small task, these are nearly all inputs there are.
    own = np.unique(np.concatenate([task.sample(rng, SEVERAL * half), task.held_out]), axis=0)
    own = rng.permutation(own)[:half]
    ids = np.unique(np.concatenate([own, out_of_distribution_inputs(task, rng, half)]), axis=0)
    of_task = np.array([row.tobytes() in {one.tobytes() for one in own} for row in ids])
    said = [task.answers(program, ids) for program in (first, second)]
    known = ((said[0] != NO_ANSWER) | (said[1] != NO_ANSWER)) & task.is_asked(ids)
    by: Literal["answers", "attention"] = "answers"
    differ = (said[0] != said[1]) & known
    difference = differ.mean(axis=1)
    if not difference.any():
        by, difference = "attention", _reading_difference(first, second, task, ids)
    order = np.argsort(-difference, kind="stable")[:n]
    order = order[difference[order] > 0]
    return DistinguishingInputs(ids[order], by, difference[order], differ[order], of_task[order])


def _reading_difference(first: SOp, second: SOp, task: Task, ids: Ids) -> Float[np.ndarray, " input"]:
    """1 minus the overlap (Jaccard) of what the selectors of two programs read on each input."""
    differences = []
    for tokens in task.sequences(ids):
        a, b = (_reads(program, task, tokens) for program in (first, second))
        either = (a | b).sum()
        differences.append(1 - (a & b).sum() / either if either else 0.0)
    return np.array(differences)


def _reads(program: SOp, task: Task, tokens: Sequence) -> Bool[np.ndarray, "query key"]:
    reads = np.zeros((task.n_ctx, task.n_ctx), dtype=bool)
    for expr in expressions(program):
        if isinstance(expr, rasp.Select | rasp.SelectBest):
            try:
                reads |= np.array(run(expr, tokens, mask=task.visible), dtype=bool) & task.visible
            except UndefinedValue:
                continue
    return reads
