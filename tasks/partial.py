"""Part of a task: the answers of which a program says something."""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError
from rasplens.tasks.task import NO_ANSWER, Ids, Task

MOST_DRAWS = 50
"""How many times inputs are drawn again to find some on which a program has an answer."""


def partial_task(task: Task, program: SOp) -> Task:
    """A task that asks only for the answers that a program has; where it is undefined or None, nothing is asked.

    So a program can be held against the part of a model that it describes. A task that was made from a program has
    None among its answers: that is none of the part's.

    Raises:
        RaspLensError: If it has hardly any answers.
    """
    none = [NO_ANSWER, *(code for code, value in enumerate(task.outputs) if value is None)]

    def asked(ids: Ids) -> Bool[np.ndarray, "batch loss_pos"]:
        return np.asarray(task.is_asked(ids) & ~np.isin(task.answers(program, ids), none))

    def draw(rng: np.random.Generator, n: int) -> Ids:
        found = task.held_out[:0]
        for _ in range(MOST_DRAWS):
            drawn = task.draw(rng, n)
            found = np.concatenate([found, drawn[asked(drawn).any(axis=1)]])[:n]
            if len(found) == n:
                return found
        raise RaspLensError(
            f"The program has an answer on {len(found)} of {MOST_DRAWS * n:,} inputs of {task.name!r}: too few to "
            "compare it with part of a model."
        )

    held_out = task.held_out[asked(task.held_out).any(axis=1)]
    if not len(held_out):
        raise RaspLensError(f"The program has no answer on any held-out input of {task.name!r}.")
    return replace(task, draw=draw, held_out=held_out, asked=asked)
