"""How far a weighted program agrees with a model under interventions, between a floor and a ceiling."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched_logits
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compare.weighted.questions import Asked, asked, questions
from rasplens.compile import CompiledModel
from rasplens.compile.weighted import Inputs, Patch, Vote, inputs_of, votes
from rasplens.errors import RaspLensError
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task
from rasplens.tasks.task import Ids

BATCH = 256
"""Questions that a weighted program is asked at once."""

Answering = Callable[[EdgePatch | None], Int[np.ndarray, "row answer"]]
"""From a patch to answers, as the task's codes; from None, to those on all inputs."""


@dataclass(frozen=True)
class Agreement:
    """How far answers agree with a model's, each a share.

    Attributes:
        answers: Of all unpatched answers.
        errors: Of the answers where the model is wrong; NaN if it never is.
        changed: By what is patched, of the answers that the patch changes.
        kept: By what is patched, of the others.
        distance: By what is patched, the mean distance of numbers where the patch changes the answer; NaN where
            answers are no numbers.
    """

    answers: float
    errors: float
    changed: Mapping[str, float]
    kept: Mapping[str, float]
    distance: Mapping[str, float]


@dataclass(frozen=True)
class Statement:
    """Agreement with a model under interventions: of a weighted program, beside other programs and models.

    It is never that the model implements the program. The floor is the best hard program; the ceiling is a model
    that learned the same task from another seed.

    Attributes:
        agreement: By name, what agrees how far.
        n_numbers: By name, the numbers of weighted programs; None for what is no weighted program.
        n_questions: How many answers each patch changes.
    """

    agreement: Mapping[str, Agreement]
    n_numbers: Mapping[str, int | None]
    n_questions: Mapping[str, int]

    def table(self) -> pd.DataFrame:
        """A row for each program and model: its numbers, and agreement with the model."""
        rows = []
        for name, one in self.agreement.items():
            changed = {f"{what} changed": share for what, share in one.changed.items()}
            kept = {f"{what} kept": share for what, share in one.kept.items()}
            apart = {f"{what} distance": mean for what, mean in one.distance.items() if np.isfinite(mean)}
            row: dict[str, Any] = {
                "name": name,
                "numbers": self.n_numbers[name],
                "answers": one.answers,
                "errors": one.errors,
            }
            rows.append(row | changed | kept | apart)
        return pd.DataFrame(rows).astype({"numbers": "Int64"})


def state(
    model: AnyModel,
    task: Task | str,
    programs: Mapping[str, Vote | CompiledModel],
    models: Mapping[str, AnyModel],
    n: int = 2_000,
    seed: int = 1,
) -> Statement:
    """How far programs and other models agree with a model, on held-out inputs.

    Args:
        model: The model, which has a logit for each of the task's answers.
        task: What it is asked.
        programs: Weighted programs, and hard ones, compiled.
        models: Others that learned the task.
        n: Questions of each kind.
        seed: Of inputs and interventions: another one than of the fit.

    Raises:
        RaspLensError: If a program and a model have one name, or the model lacks a logit for one of the answers.
    """
    if twice := sorted(set(programs) & set(models)):
        raise RaspLensError(f"A program and a model are both called {twice[0]!r}. Give them two names.")
    task = as_task(task)
    rng = np.random.default_rng(seed)
    ids = task.held_out[rng.permutation(len(task.held_out))[:n]]
    studied = as_studied_model(model, task, ids)
    drawn = questions(task, len(ids), n, rng)
    found = {name: asked(studied, patch) for name, patch in drawn.items()}
    answering = {name: _answering(one, task, ids) for name, one in {**programs, **models}.items()}
    return Statement(
        {name: _agreement(one, studied, found) for name, one in answering.items()},
        {name: one.n_numbers if isinstance(one, Vote) else None for name, one in {**programs, **models}.items()},
        {name: int(one.changed.sum()) for name, one in found.items()},
    )


def _answering(one: Vote | AnyModel, task: Task, ids: Ids) -> Answering:
    return _of_program(one, task, ids) if isinstance(one, Vote) else _of_model(as_studied_model(one, task, ids))


def _of_model(studied: StudiedModel) -> Answering:
    def answers(patch: EdgePatch | None) -> np.ndarray:
        return studied.answers() if patch is None else studied.vocabulary.codes(patched_logits(studied, patch))

    return answers


def _of_program(program: Vote, task: Task, ids: Ids) -> Answering:
    inputs = inputs_of(program, ids, task.vocab, task.visible, task.loss_positions)

    def answers(patch: EdgePatch | None) -> np.ndarray:
        if patch is None:
            starts = range(0, len(ids), BATCH)
            return np.concatenate([_voted(program, inputs.of(slice(at, at + BATCH)), None) for at in starts])
        parts = [patch.of(slice(at, at + BATCH)) for at in range(0, len(patch), BATCH)]
        return np.concatenate(
            [
                _voted(program, inputs.of(one.base), Patch(inputs.of(one.source), one.edges, one.part))
                for one in parts
            ]
        )

    return answers


def _voted(program: Vote, inputs: Inputs, patch: Patch | None) -> np.ndarray:
    return np.asarray(votes(program, inputs, patch)).argmax(axis=-1)


def _agreement(answering: Answering, studied: StudiedModel, found: Mapping[str, Asked]) -> Agreement:
    own, right = answering(None), studied.answers()
    wrong = right != studied.targets
    said = {name: answering(one.patch) for name, one in found.items()}
    agrees = {name: said[name] == one.answers for name, one in found.items()}
    return Agreement(
        float((own == right).mean()),
        float((own == right)[wrong].mean()) if wrong.any() else float("nan"),
        {name: _share(agrees[name], one.changed) for name, one in found.items()},
        {name: _share(agrees[name], ~one.changed) for name, one in found.items()},
        {name: _distance(said[name], one, studied.task.outputs) for name, one in found.items()},
    )


def _share(agrees: np.ndarray, where: np.ndarray) -> float:
    return float(agrees[where].mean()) if where.any() else float("nan")


def _distance(said: np.ndarray, one: Asked, outputs: Sequence[object]) -> float:
    if not all(isinstance(value, int | float) for value in outputs) or not one.changed.any():
        return float("nan")
    numbers = np.array(outputs, dtype=float)
    return float(np.abs(numbers[said] - numbers[one.answers])[one.changed].mean())
