"""How far a weighted program agrees with a model under interventions, between a floor and a ceiling."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy.stats import bootstrap

from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched_logits
from rasplens.compare.claims.trials.judging import Share
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compare.weighted.questions import Asked, asked, check_candidates, questions
from rasplens.compile.rasp.values import is_number
from rasplens.compile.weighted import Patch, Vote, answers, inputs_of
from rasplens.model import random_streams
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task
from rasplens.tasks.task import Ids

BATCH = 256
"""Questions that a weighted program is asked at once."""

N_DRAWN = 400
"""Bootstrap samples of an interval."""

Answering = Callable[[EdgePatch | None], Int[np.ndarray, "row answer"]]
"""From a patch to answers, as the task's codes; from None, to those on all inputs."""


@dataclass(frozen=True)
class Agreement:
    """How far answers agree with a model's.

    Attributes:
        answers: The share of all unpatched answers.
        errors: The share of the answers where the model is wrong.
        changed: By what is patched, the share of the answers that the patch changes.
        kept: By what is patched, the share of the others.
        distance: By what is patched, the mean distance of numbers where the patch changes the answer; NaN where
            answers are no numbers.
    """

    answers: Share
    errors: Share
    changed: Mapping[str, Share]
    kept: Mapping[str, Share]
    distance: Mapping[str, float]


@dataclass(frozen=True)
class Statement:
    """Agreement with a model under interventions: of a weighted program, beside other programs and models.

    It is never that the model implements the program. The floor is the best hard program; the ceiling is a model
    that learned the same task from another seed.

    Attributes:
        agreement: By name, what agrees how far.
        n_numbers: By name, the numbers of weighted programs; None for what is no weighted program.
    """

    agreement: Mapping[str, Agreement]
    n_numbers: Mapping[str, int | None]

    def table(self) -> pd.DataFrame:
        """A row for each program and model: its numbers, and agreement with the model with its 95 % intervals."""
        rows = []
        for name, one in self.agreement.items():
            shares = {"answers": one.answers, "errors": one.errors}
            shares |= {f"{what} changed": share for what, share in one.changed.items()}
            shares |= {f"{what} kept": share for what, share in one.kept.items()}
            row: dict[str, Any] = {"name": name, "numbers": self.n_numbers[name]}
            for what, share in shares.items():
                row |= {
                    what: share.score,
                    f"{what} low": share.low,
                    f"{what} high": share.high,
                    f"{what} n": share.n,
                }
            row |= {f"{what} distance": mean for what, mean in one.distance.items() if np.isfinite(mean)}
            rows.append(row)
        return pd.DataFrame(rows).astype({"numbers": "Int64"})


def state(
    model: AnyModel,
    task: Task | str,
    beside: Mapping[str, Vote | AnyModel],
    n: int = 2_000,
    seed: int = 1,
) -> Statement:
    """How far programs and other models agree with a model, on held-out inputs.

    Args:
        model: The model, which has a logit for each of the task's answers.
        task: What it is asked.
        beside: By name, weighted programs, hard ones, compiled, and other models that learned the task.
        n: Questions of each kind.
        seed: Of inputs, interventions and intervals.

    Raises:
        RaspLensError: If the model lacks a logit for one of the answers, or a program's candidates are others.
    """
    task = as_task(task)
    rng = random_streams.rng(seed, "weighted statement")
    ids = task.held_out[rng.permutation(len(task.held_out))[:n]]
    studied = as_studied_model(model, task, ids)
    found = {name: asked(studied, patch) for name, patch in questions(task, len(ids), n, rng).items()}
    answering = {name: _answering(one, task, ids) for name, one in beside.items()}
    return Statement(
        {name: _agreement(one, studied, found, rng) for name, one in answering.items()},
        {name: one.n_numbers if isinstance(one, Vote) else None for name, one in beside.items()},
    )


def _answering(one: Vote | AnyModel, task: Task, ids: Ids) -> Answering:
    return _of_program(one, task, ids) if isinstance(one, Vote) else _of_model(as_studied_model(one, task, ids))


def _of_model(studied: StudiedModel) -> Answering:
    def said(patch: EdgePatch | None) -> np.ndarray:
        return studied.answers() if patch is None else studied.vocabulary.codes(patched_logits(studied, patch))

    return said


def _of_program(program: Vote, task: Task, ids: Ids) -> Answering:
    check_candidates(program, task)
    inputs = inputs_of(program, ids, task.vocab, task.visible, task.loss_positions)

    def said(patch: EdgePatch | None) -> np.ndarray:
        n = len(ids) if patch is None else len(patch)
        batches = [slice(start, start + BATCH) for start in range(0, n, BATCH)]
        if patch is None:
            return np.concatenate([answers(program, inputs.of(one)) for one in batches])
        asked_at_once = [patch.of(one) for one in batches]
        return np.concatenate(
            [
                answers(program, inputs.of(one.base), Patch(inputs.of(one.source), one.edges, one.part))
                for one in asked_at_once
            ]
        )

    return said


def _agreement(
    answering: Answering, studied: StudiedModel, found: Mapping[str, Asked], rng: np.random.Generator
) -> Agreement:
    own, given = answering(None), studied.answers()
    said = {name: answering(one.patch) for name, one in found.items()}
    agrees = {name: said[name] == one.answers for name, one in found.items()}
    wrong = studied.asked & (given != studied.targets)
    return Agreement(
        _share(own == given, studied.asked, rng),
        _share(own == given, wrong, rng),
        {name: _share(agrees[name], one.changed, rng) for name, one in found.items()},
        {name: _share(agrees[name], one.kept, rng) for name, one in found.items()},
        {name: _distance(said[name], one, studied.task.outputs) for name, one in found.items()},
    )


def _share(agrees: np.ndarray, where: np.ndarray, rng: np.random.Generator) -> Share:
    """The share of some answers that agree; its interval over questions, whose answers hang together.

    NaN if there is none of them; without an interval if all stand in one question.
    """
    right, of = (agrees & where).sum(axis=1), where.sum(axis=1)
    right, of = right[of > 0], of[of > 0]
    if len(of) < 2:
        return Share(float(right.sum() / of.sum()) if len(of) else math.nan, math.nan, math.nan, int(of.sum()))
    found = bootstrap(
        (right, of), _ratio, paired=True, vectorized=True, method="percentile", n_resamples=N_DRAWN, rng=rng
    )
    low, high = found.confidence_interval
    return Share(float(right.sum() / of.sum()), float(low), float(high), int(of.sum()))


def _ratio(right: np.ndarray, of: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(right.sum(axis=axis) / of.sum(axis=axis))


def _distance(said: np.ndarray, one: Asked, outputs: Sequence[object]) -> float:
    there = one.changed & (said >= 0)  # a hard program may have none of the task's answers
    if not all(map(is_number, outputs)) or not there.any():
        return math.nan
    numbers = np.array(outputs, dtype=float)
    return float(np.abs(numbers[said] - numbers[one.answers])[there].mean())
