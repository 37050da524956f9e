"""Which interventions pose a question that the task itself could pose.

Inside a model, an intervention makes states that no input makes. Of what happens then a program says something,
but a model that was trained on the task alone was never asked. So only such interventions count in which every
selector selects as many keys as it does on some input, and every answer is one that the task has at its position.

A selector of the best among several keys selects one. But a model that never had to choose between several may
choose as it likes: whether there was a choice counts as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.models.pairing import Pairing
from rasplens.compare.models.studied_model import scores_point
from rasplens.tasks.task import NOT_ASKED

APART = 1.0
"""Attention scores of compiled heads are the same, or further apart than this."""


CHOICES = 3
"""None, one, or several keys to choose from."""


@dataclass(frozen=True, eq=False)
class Posable:
    """What occurs in the compiled model on the task's inputs.

    Attributes:
        rows: By layer, head and relevant position of the model, which selections occur, as `selections` numbers
            them: `[selection]`.
        answers: Which answers occur, `[answer, code]`.
        has_bos: Whether the compiled model has a BOS, which says from which score on a key is selected.
    """

    rows: Mapping[tuple[int, int, int], np.ndarray]
    answers: Bool[np.ndarray, "answer code"]
    has_bos: bool

    def are_posed(
        self,
        expected: Int[np.ndarray, "pair answer"],
        scores: Mapping[int, np.ndarray],
    ) -> Bool[np.ndarray, " pair"]:
        """Whether answers and selections are such as the task has.

        Args:
            expected: The answers, as the task's codes; `NOT_ASKED` where the task asks for none.
            scores: By layer, the attention scores of the compiled model: `[pair, head, ctx, ctx]`.
        """
        known = self.answers[np.arange(len(self.answers)), expected] & (expected >= 0)
        posed = (known | (expected == NOT_ASKED)).all(axis=1)
        for (layer, head, place), sizes in self.rows.items():
            posed &= sizes[selections(scores[layer][:, head, place], self.has_bos)]
        return np.asarray(posed)


def selections(scores: Float[np.ndarray, "*batch ctx"], has_bos: bool) -> Int[np.ndarray, "*batch"]:
    """How many keys a compiled head selects, three times; and 1 more if one could be, 2 if several could.

    Keys that could be selected, but for a better one, are those that predicates hold for. The BOS stands right
    below all of them, or level with them where they are counted. Without one, it is not known.
    """
    selected = (scores > scores.max(axis=-1, keepdims=True) - APART).sum(axis=-1)
    could_be = (scores[..., 1:] > scores[..., :1] - APART).sum(axis=-1) if has_bos else selected
    return np.asarray(CHOICES * selected + np.minimum(could_be, CHOICES - 1))


def posable(pairing: Pairing) -> Posable:
    """What occurs on a pairing's inputs."""
    reference, n_answers = pairing.reference, len(pairing.task.loss_positions)
    has_bos = pairing.compiled.has_bos
    rows = {}
    for (layer, head), positions in pairing.relevant_rows.items():
        scores = reference.whole(scores_point(layer))
        for place in map(reference.at, positions):
            seen = np.zeros(CHOICES * (scores.shape[-1] + 1), dtype=bool)
            seen[selections(scores[:, head, place], has_bos)] = True
            rows[layer, head, place] = seen
    asked = reference.answers()
    answers = np.zeros((n_answers, len(pairing.task.outputs)), dtype=bool)
    known = asked >= 0
    answers[np.nonzero(known)[1], asked[known]] = True
    return Posable(rows, answers, has_bos)
