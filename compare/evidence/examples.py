"""A few inputs with everybody's answers: what a task looks like, and what the models say."""

import numpy as np
import pandas as pd

from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.tasks import Task

N_EXAMPLES = 3

NOTHING = "·"
"""Placeholder where the task asks for no answer."""


def examples_table(pairing: Pairing) -> pd.DataFrame:
    """The first inputs, position by position.

    Returns:
        Columns input, position (its name), token, and the answers there as text: right, compiled and learned.
        Where the task asks nothing, they are `NOTHING`.
    """
    task = pairing.task
    answers = {
        "right": _texts(task, task.target(pairing.ids[:N_EXAMPLES])),
        "compiled": _of(pairing.reference, task),
        "learned": _of(pairing.learned, task),
    }
    rows = []
    for i, ids in enumerate(pairing.ids[:N_EXAMPLES].tolist()):
        for position, (name, token) in enumerate(zip(task.positions, ids, strict=True)):
            said = {who: texts[i][position] for who, texts in answers.items()}
            rows.append({"input": i + 1, "position": name, "token": task.token_names[token], **said})
    return pd.DataFrame(rows)


def _of(studied: StudiedModel, task: Task) -> list[list[str]]:
    return _texts(task, studied.answers()[:N_EXAMPLES])


def _texts(task: Task, codes: np.ndarray) -> list[list[str]]:
    """Answers at every position, of each input."""
    texts = [[NOTHING] * task.n_ctx for _ in codes]
    for row, found in zip(texts, codes.tolist(), strict=True):
        for position, code in zip(task.loss_positions, found, strict=True):
            row[position] = task.answer_name(code)
    return texts
