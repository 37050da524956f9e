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

    def answered_otherwise(self, base: int, how: str, answer: int, expected: int, given: int) -> str:
        """An answer that is not the program's, in words.

        Args:
            base: The input.
            how: What is done to it; "with the values of 'a b' along 1←0" or so.
            answer: Which of its answers.
            expected: The program's then, as the task's code.
            given: The model's.
        """
        at = self.task.positions[self.task.loss_positions[answer]]
        ours, theirs = (self.task.answer_name(code) for code in (expected, given))
        return f"on {self.tokens(base)!r} {how} the program answers {ours} at {at}, the model {theirs}"

    def tokens(self, row: int) -> str:
        """An input, with a space between tokens."""
        return " ".join(map(str, self.task.sequences(self.ids[[row]])[0]))
