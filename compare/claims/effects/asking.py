"""The trials of a part's effects, and the controls beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.claims.edges.edge_patching import EdgePatch
from rasplens.compare.claims.edges.program_edges import Edges, between_positions
from rasplens.compare.claims.edges.questions import Questions
from rasplens.compare.claims.effects.effect import Effect, LogitDifferences, turned
from rasplens.compare.claims.effects.passes import Logits
from rasplens.compare.claims.trials.independent import PairsFrom, Trials
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.errors import RaspLensError

Before = tuple[np.ndarray, np.ndarray]
"""Logit differences before and after an intervention."""


@dataclass(frozen=True, eq=False)
class Asking:
    """What is drawn for the trials of a part.

    Attributes:
        pairing: The models.
        rng: Which answer of a pair counts, which other answer it is held against, and the edges and heads of
            controls.
    """

    pairing: Pairing
    rng: np.random.Generator

    @property
    def learned(self) -> StudiedModel:
        """The model."""
        return self.pairing.learned

    @property
    def columns(self) -> Int[np.ndarray, " answer"]:
        """The model's logit of each answer of the task, -1 for one that it cannot give.

        Raises:
            RaspLensError: If it answers in another way.
        """
        if (columns := self.learned.vocabulary.columns) is None:
            raise RaspLensError("A model that answers with numbers or labels has no logit for each answer.")
        return columns

    @property
    def halves(self) -> tuple[PairsFrom, PairsFrom]:
        """Pairs of one half of the inputs, and of the other."""
        is_first = np.arange(self.pairing.n_inputs) % 2 == 0
        return PairsFrom(is_first, is_first), PairsFrom(~is_first, ~is_first)

    def trials(
        self,
        base: Int[np.ndarray, " pair"],
        which: Bool[np.ndarray, "pair answer"],
        other: Int[np.ndarray, "pair answer"] | None = None,
    ) -> LogitDifferences:
        """One answer of each pair that has any such answer, with the logits that are compared.

        Args:
            base: The bases.
            which: Answers that may count.
            other: The answer that each is held against; by default some other answer of the task.
        """
        own = self.pairing.reference.answers()[base]
        columns = self.columns
        can_say = np.append(columns >= 0, [False, False])  # codes below 0: no answer
        which = which & can_say[own] & (True if other is None else can_say[other])
        chosen = np.where(which, self.rng.random(which.shape), -1).argmax(axis=1)
        pair = np.flatnonzero(which.any(axis=1))
        answer = chosen[pair]
        first = columns[own[pair, answer]]
        second = first if other is None else columns[other[pair, answer]]
        found = LogitDifferences(pair, answer, first, second)
        return found if other is not None else self.against_others(found)

    def against_others(self, trials: LogitDifferences) -> LogitDifferences:
        """The trials with some other answer of the task in place of the one that is expected; none of two."""
        known = self.columns[self.columns >= 0]
        taken = (known == trials.own[:, None]) | (known == trials.other[:, None])
        left = np.where(taken, -1, self.rng.random(taken.shape))
        rows = np.flatnonzero((~taken).any(axis=1))
        return LogitDifferences(
            trials.pair[rows], trials.answer[rows], trials.own[rows], known[left.argmax(axis=1)][rows]
        )

    def measured(self, trials: LogitDifferences, base: Int[np.ndarray, " pair"], logits: Logits) -> Before:
        """The differences on the bases, and with other logits of the same pairs."""
        return trials.of(self.learned.clean_logits[base]), trials.of(logits)

    def on_others(self, trials: LogitDifferences, patch: EdgePatch, logits: Logits) -> Effect | None:
        """The effect on some other answer, in the same trials; None of a task with two answers."""
        others = self.against_others(trials)
        return turned(*self.measured(others, patch.base, logits)) if len(others) == len(trials) else None

    def preferring(self, trials: LogitDifferences, patch: EdgePatch, right: Bool[np.ndarray, " trial"]) -> Trials:
        """The trials of a patch as ones that come out as claimed or not."""
        base, source = patch.base[trials.pair], patch.source[trials.pair]
        return Trials(self.pairing.answered, right, base, trials.answer, source)

    def other_edges(self, patch: EdgePatch) -> Edges:
        """As many other edges of each row, at random, as far as there are so many."""
        free = between_positions(self.pairing.task) & ~patch.edges
        order = np.where(free, self.rng.random(free.shape), np.inf).argsort(axis=2).argsort(axis=2)
        return np.asarray(free & (order < patch.edges.sum(axis=2, keepdims=True)))

    def other_heads(self, heads: Sequence[Head]) -> tuple[Head, ...]:
        """As many other heads of the model, at random, as far as there are so many."""
        free = [head for head in self.learned.heads if head not in heads]
        drawn = self.rng.permutation(len(free))[: len(heads)]
        return tuple(free[i] for i in drawn)


def some(asked: Questions, n: int) -> Questions:
    """The first questions of which an answer changes, and the first of which one is at risk; so many of each."""
    kinds = asked.changes.any(axis=1), asked.at_risk.any(axis=1)
    rows = np.unique(np.concatenate([np.flatnonzero(kind)[:n] for kind in kinds]))
    return asked.of(rows)


def telling(asked: Questions, n: int) -> Questions:
    """So many questions that change an answer, with the fewest edges; and that keep one, with the most.

    With all edges patched many programs change what this one does, and with few nearly all keep what it keeps.
    """
    order = np.argsort(asked.patch.edges.sum(axis=(1, 2)), kind="stable")
    changing, keeping = (np.asarray(kind.any(axis=1))[order] for kind in (asked.changes, asked.at_risk))
    few, many = order[changing][:n], order[keeping][-n:]
    found = asked.of(np.concatenate([few, many]))
    is_first = np.arange(len(found)) < len(few)
    return replace(found, changes=found.changes & is_first[:, None], at_risk=found.at_risk & ~is_first[:, None])
