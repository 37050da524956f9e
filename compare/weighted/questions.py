"""Questions under which a model and programs are compared: inputs with a part of some edges as it is on others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched_logits
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compile.rasp.values import value_key
from rasplens.compile.weighted import Vote
from rasplens.errors import RaspLensError
from rasplens.model.interventions import EdgePart
from rasplens.tasks import Task

PARTS: Sequence[EdgePart] = ("values", "keys", "queries")

SHARES = (1.0, 0.5, 0.2, 0.05)
"""Of the edges between positions, the shares that are patched, by turns."""

MOST_EDGES = 8
"""Where a task has at most so many edges between positions, each is also patched by itself."""


def questions(task: Task, inputs: int, n: int, rng: np.random.Generator) -> Mapping[str, EdgePatch]:
    """Questions by what is patched: values, keys and queries; where there are few edges, also along each alone.

    Args:
        task: The task.
        inputs: How many inputs there are.
        n: How many questions of each kind.
        rng: Of inputs, sources and edges.
    """
    visible = np.asarray(task.visible)
    found: dict[str, EdgePatch] = {}
    for part in PARTS:
        base, source = rng.integers(0, inputs, (2, n))
        share = np.resize(SHARES, n)[:, None, None]
        drawn = rng.random((n, task.n_ctx, 1 if part == "queries" else task.n_ctx)) < share
        found[part] = EdgePatch(base, source, drawn & visible, part)
    if visible.sum() <= MOST_EDGES:
        for query, key in np.argwhere(visible).tolist():
            for part in ("values", "keys"):
                base, source = rng.integers(0, inputs, (2, n))
                edges = np.zeros((n, *visible.shape), dtype=bool)
                edges[:, query, key] = True
                name = f"{part} {task.positions[query]}←{task.positions[key]}"
                found[name] = EdgePatch(base, source, edges, part)
    return found


@dataclass(frozen=True, eq=False)
class Asked:
    """A model's logits under questions, and its answers.

    Attributes:
        patch: The questions of one kind.
        logits: The model's, of the task's answers.
        clean: The same, unpatched.
        scored: Which answers the task asks for.
    """

    patch: EdgePatch
    logits: Float[np.ndarray, "pair answer output"]
    clean: Float[np.ndarray, "pair answer output"]
    scored: Bool[np.ndarray, "pair answer"]

    @property
    def answers(self) -> Int[np.ndarray, "pair answer"]:
        """The model's answers."""
        return np.asarray(self.logits.argmax(axis=-1))

    @property
    def changed(self) -> Bool[np.ndarray, "pair answer"]:
        """Which answers that the task asks for the patch changes."""
        return np.asarray(self.scored & (self.answers != self.clean.argmax(axis=-1)))

    @property
    def kept(self) -> Bool[np.ndarray, "pair answer"]:
        """Which answers that the task asks for the patch does not change."""
        return np.asarray(self.scored & ~self.changed)


def asked(studied: StudiedModel, patch: EdgePatch) -> Asked:
    """A model under the questions of one kind.

    Args:
        studied: The model, which has a logit for each of the task's answers.
        patch: The questions.

    Raises:
        RaspLensError: If the model lacks a logit for one of the answers.
    """
    columns = studied.vocabulary.columns
    if columns is None or (columns < 0).any():
        raise RaspLensError(
            f"A weighted program needs a model with a logit for each answer of {studied.task.name!r}; this one "
            "answers with a number or several labels, or cannot give some answer. Use a task whose outputs it has."
        )
    clean, logits = studied.clean_logits[patch.base], patched_logits(studied, patch)
    return Asked(patch, logits[..., columns], clean[..., columns], studied.asked[patch.base])


def check_candidates(program: Vote, task: Task) -> None:
    """Raises unless a program is a weighted one, and votes for the task's answers in their order.

    Raises:
        RaspLensError: If it does not.
    """
    if not isinstance(program, Vote):
        raise RaspLensError(f"A weighted program is a Vote(...); got {program!r}.")
    if tuple(map(value_key, program.candidates)) != tuple(map(value_key, task.outputs)):
        raise RaspLensError(f"The candidates must be the answers of {task.name!r}. Set candidates=task.outputs.")
