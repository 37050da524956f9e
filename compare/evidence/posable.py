"""Which interventions pose a question that the task itself could pose.

Inside a model, an intervention makes states that no input makes. Of what happens then a program says something,
but a model that was trained on the task alone was never asked. So only such interventions count in which every
selector selects as many keys as it does on some input, and every answer is one that the task has at its position.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.models.pairing import Pairing
from rasplens.tasks.task import NO_ANSWER


@dataclass(frozen=True, eq=False)
class Posable:
    """What occurs in the compiled model on the task's inputs.

    Attributes:
        rows: By layer, head and relevant position of the model, which selection sizes occur: `[size]`.
        answers: Which answers occur, `[answer, code]`.
    """

    rows: Mapping[tuple[int, int, int], np.ndarray]
    answers: Bool[np.ndarray, "answer code"]

    def are_posed(self, expected: np.ndarray, patterns: Mapping[int, np.ndarray]) -> Bool[np.ndarray, " pair"]:
        """Whether answers and selections are such as the task has."""
        known = self.answers[np.arange(len(self.answers)), expected] & (expected != NO_ANSWER)
        posed = known.all(axis=1)
        for (layer, head, place), sizes in self.rows.items():
            posed &= sizes[selection_sizes(patterns[layer][:, head, place])]
        return np.asarray(posed)


def selection_sizes(attention: np.ndarray) -> Int[np.ndarray, "*batch"]:
    """How many keys get attention, in tenths: the inverse of the sum of squares, 0 for a row without any."""
    squares = (attention.astype(np.float64) ** 2).sum(axis=-1)
    return np.rint(10 / np.where(squares > 0, squares, np.inf)).astype(int)


def posable(pairing: Pairing) -> Posable:
    """What occurs on a pairing's inputs."""
    reference, n_answers = pairing.reference, len(pairing.task.loss_positions)
    rows = {}
    for (layer, head), positions in pairing.relevant_rows.items():
        attention = reference.whole_pattern(layer)
        for place in map(reference.at, positions):
            seen = np.zeros(10 * attention.shape[-1] + 11, dtype=bool)
            seen[selection_sizes(attention[:, head, place])] = True
            rows[layer, head, place] = seen
    asked = reference.answers()
    answers = np.zeros((n_answers, len(pairing.task.outputs)), dtype=bool)
    known = asked != NO_ANSWER
    answers[np.nonzero(known)[1], asked[known]] = True
    return Posable(rows, answers)
