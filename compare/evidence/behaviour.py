"""Fifth axis: does the model answer as the program does?

On a task's own inputs several programs may be right. So models are also asked on inputs on which alternative
programs differ, and on inputs outside the task's distribution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from rasplens.compare.evidence.trials import one_of_each
from rasplens.compare.models.inputs import all_inputs, enough_held_out
from rasplens.compare.models.pairing import Pairing, Side
from rasplens.compile import UndefinedValue, rasp, run
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.interpreter import expressions
from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.tasks import Task
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs
from rasplens.tasks.task import NO_ANSWER, NOT_ASKED, Ids

HELD_OUT = "held out"
"""Inputs of the task that nothing was trained on."""

ALL = "all inputs"
"""All inputs of a task that has only a few, where too few are held out; most of them are trained on."""

OUT_OF_DISTRIBUTION = "out of distribution"
"""Inputs that the task does not draw: what a model does there is reported, and decides nothing."""

N_CANDIDATES = 600
"""Inputs among which those are sought that tell two programs apart: half of the task's own, half
out of distribution."""


SEVERAL = 4
"""So many times as many of the task's own are drawn; of those and the held-out ones, each is taken once."""


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
        raise RaspLensError(f"discriminate needs n of at least 1; got {n}.")
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


@dataclass(frozen=True, eq=False)
class Behaviour:
    """How a learned model answers as the program does.

    Attributes:
        table: One row per kind of input: inputs (which), n, agreement (with the program), untrained (that of the
            control), right (by the task's own target; NaN where it says nothing of such inputs), undefined (the
            share of the answers asked for that the program does not have), exhaustive (whether there are no others
            of that kind).
        trials: By kind of input, whether the model agrees on one answer of each, drawn at random; of inputs that
            tell an alternative apart, of the answers that do.
        by_answer: By answer of the program, as the task's codes, whether the model agrees on one such answer of
            each input that has any: of those that are drawn, and of others with rare answers.
        agrees: On the task's own held-out inputs and those that tell alternatives apart, the share of
            answers on which model and program agree, and the control's: `[2, input]`.
    """

    table: pd.DataFrame
    trials: Mapping[str, Bool[np.ndarray, " _"]]
    by_answer: Mapping[int, Bool[np.ndarray, " _"]]
    agrees: Float[np.ndarray, "2 counted"]


def behaviour(pairing: Pairing, distinguishing: Mapping[str, DistinguishingInputs], seed: int) -> Behaviour:
    """Agreement on the task's inputs, on those that tell alternatives apart, and out of distribution.

    Args:
        pairing: The models.
        distinguishing: By the alternative's name, inputs that tell it from the reference by its answers.
        seed: Of the out-of-distribution inputs.
    """
    task = pairing.task
    rows, counted, trials = [], [], {}
    draw = random_streams.rng(seed, "behaviour trials")
    everything = np.ones((1, len(task.loss_positions)), dtype=bool)
    whole = all_inputs(task)
    if whole is None or enough_held_out(task):
        kinds = {HELD_OUT: (pairing.ids[: pairing.n_drawn], everything)}
    else:
        kinds = {ALL: (whole, everything)}
    for name, found in distinguishing.items():
        if found.by == "answers":
            for end, which in (("", found.of_task), (f", {OUT_OF_DISTRIBUTION}", ~found.of_task)):
                kinds[f"against {name}{end}"] = found.ids[which], found.answers[which]
    others = random_streams.rng(seed, "out-of-distribution inputs")
    ood = out_of_distribution_inputs(task, others, min(300, pairing.n_inputs))
    kinds[OUT_OF_DISTRIBUTION] = ood, everything
    for kind, (ids, tell) in kinds.items():
        if not len(ids):
            continue
        said = _given(pairing, "reference", ids)
        # Where the task asks, no answer is one as well; elsewhere a program need not be defined.
        asked = said != NOT_ASKED if not kind.endswith(OUT_OF_DISTRIBUTION) else said >= 0
        given = _given(pairing, "learned", ids)
        agrees = np.stack([(one == said) & asked for one in (given, _given(pairing, "untrained", ids))])
        share = agrees.sum(axis=2) / np.maximum(1, asked.sum(axis=1))
        share = share[:, asked.any(axis=1)]
        if not share.shape[1]:
            continue
        undefined = float((said == NO_ANSWER)[asked].mean())
        right = float(task.right(given, ids).mean()) if kind in (HELD_OUT, ALL) else float("nan")
        exhaustive = kind == ALL or (kind == HELD_OUT and len(ids) == len(task.held_out))
        rows.append((kind, share.shape[1], *share.mean(axis=1), right, undefined, exhaustive))
        trials[kind] = one_of_each(agrees[0], asked & tell, draw)
        if not kind.endswith(OUT_OF_DISTRIBUTION) and kind != ALL:
            counted.append(share)
    columns = ["inputs", "n", "agreement", "untrained", "right", "undefined", "exhaustive"]
    table = pd.DataFrame(rows, columns=columns)
    agreement = np.concatenate([np.zeros((2, 0)), *counted], axis=1)
    return Behaviour(table, trials, _by_answer(pairing, whole, draw), agreement)


def _given(pairing: Pairing, side: Side, ids: Ids) -> Int[np.ndarray, "input answer"]:
    """One side's answers on inputs; on the pairing's own ones they are known."""
    studied = getattr(pairing, side)
    if ids is pairing.ids or (len(ids) == pairing.n_drawn and ids.base is pairing.ids):
        return studied.answers()[: len(ids)]
    return studied.on(ids).answers()


def _by_answer(
    pairing: Pairing, whole: Ids | None, draw: np.random.Generator
) -> dict[int, Bool[np.ndarray, " _"]]:
    ids = pairing.ids if whole is None else whole
    said, given = _given(pairing, "reference", ids), _given(pairing, "learned", ids)
    codes = np.unique(said[said >= 0]).tolist()
    return {code: one_of_each(given == said, said == code, draw) for code in codes}
