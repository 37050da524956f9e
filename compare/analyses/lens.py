"""The logit lens at every node: what would be answered if the residual stream were read here."""

import numpy as np
import pandas as pd

from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.weight_circuits import logit_lens
from rasplens.tasks import Task
from rasplens.tasks.task import marked


def lens_table(studied: StudiedModel) -> pd.DataFrame:
    """The logit lens on every hook point of the residual stream and every position (nostalgebraist 2020).

    Returns:
        One row per node: point, position, answer (the commonest), share (of the inputs that have it), and for
        every answer position the share of inputs on which the lens gives that position's right answer, in a
        column named after it.
    """
    task, rows = studied.task, []
    for point in studied.residual_points:
        codes = lens_codes(studied, point)
        for position, name in enumerate(task.positions):
            values, counts = np.unique(codes[:, position], return_counts=True)
            commonest = int(values[counts.argmax()])
            row: dict[str, object] = {"point": point, "position": name, "answer": answer_name(task, commonest)}
            row["share"] = float(counts.max() / len(codes))
            for column, place in enumerate(task.loss_positions):
                right = marked(codes[:, position], studied.targets[:, column])
                row[task.positions[place]] = float(right.mean())
            rows.append(row)
    return pd.DataFrame(rows)


def lens_codes(studied: StudiedModel, point: str) -> np.ndarray:
    """The answers that the lens gives, as codes of the task's: `[input, position]`."""
    logits = logit_lens(studied.model.to_transformer(), studied.residual(point))
    return studied.vocabulary.codes(logits)


def answer_name(task: Task, code: int) -> str:
    """An answer as it is printed."""
    return "–" if code < 0 else str(task.outputs[code])
