"""Inputs of a task with the program's answers on them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from rasplens.tasks import Task
from rasplens.tasks.task import Ids


@dataclass(frozen=True, eq=False)
class AnsweredInputs:
    """Inputs, and what the program answers on them.

    Attributes:
        task: Whose inputs.
        ids: The inputs.
        answers: The program's answers, as the task's codes.
        n_drawn: How many are as the task draws them; behind them stand some with rare answers.
    """

    task: Task
    ids: Ids
    answers: Int[np.ndarray, "input answer"]
    n_drawn: int
