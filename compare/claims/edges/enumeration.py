"""Claims on routes, on all pairs of inputs that a task has: then nothing is left to chance.

Along which edges values are gathered is known on each input. So the questions of such a claim are the pairs of
inputs. Keys, queries and counted edges are patched along some of many edges. Where a single layer attends in both
models, the answer at a position follows from its own row of attention, and what another position gives to it
follows from the token there. Then to patch some keys is to patch all of them from the input that has their tokens.
If all sequences of tokens are inputs, pairs of them, row by row, are all questions. Of a row's counted edges,
every set is removed. Where several layers attend, sets of edges are too many.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.claims.claim import Enumerated
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.claims.edges.pool import Pool, pool_of
from rasplens.compare.claims.edges.program_edges import Edges, ProgramEdges, between_positions
from rasplens.compare.claims.edges.questions import (
    CountedEdges,
    GatheredEdges,
    OtherEdges,
    Questions,
    Route,
    in_words,
)
from rasplens.compare.pairing.inputs import inputs_in_words, is_every_sequence
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.model.hooked import HookedModel
from rasplens.model.interventions import EdgePart

AT_ONCE = 8_192
"""Pairs of inputs that are asked about at a time."""

MOST_COUNTED = 12
"""Of more positions, sets of counted edges are too many."""


@dataclass(frozen=True, eq=False)
class Enumerator:
    """All pairs of a task's inputs, to ask about.

    Attributes:
        pool: The inputs on which model and program agree.
        row_by_row: Whether rows of attention, each by itself, are all that there is to ask about keys.
    """

    pool: Pool
    row_by_row: bool

    def enumerated(self, questions: Questions, heads: Sequence[Head] | None) -> Enumerated | None:
        """A claim on routes, on all pairs.

        Args:
            questions: Some questions about it.
            heads: The learned heads in which edges are patched; None for all.

        Returns:
            None where pairs of inputs are not all that there is to ask about, or none can be asked.
        """
        subject, part = questions.subject, questions.patch.part
        if not (isinstance(subject, GatheredEdges | OtherEdges) or self.row_by_row):
            return None
        pairing, asked, wrong, example = self.pool.pairing, 0, 0, ""
        for patch in self._patches(subject, part):
            posed = self.pool.posed_by(patch)
            rows = np.flatnonzero(posed.asked)
            if not len(rows):
                continue
            given, _ = patched(pairing.learned, patch.of(rows), heads=heads)
            counts = (posed.changes | posed.at_risk)[rows]
            differs = counts & (given != posed.expected[rows])
            asked, wrong = asked + len(rows), wrong + int(differs.any(axis=1).sum())
            example = example or in_words(pairing.answered, patch.of(rows), posed.expected[rows], given, differs)
        return Enumerated(self._every(subject), asked, wrong, example) if asked else None

    def _every(self, subject: Route) -> str:
        n, pairing = len(self.pool.inputs), self.pool.pairing
        which = "" if n == pairing.n_inputs else " that it answers as the program does"
        inputs = f"{inputs_in_words(pairing.task, pairing.ids)}{which}"
        if isinstance(subject, CountedEdges):
            return f"all {n:,} {inputs}"
        return f"all {n**2:,} pairs" if inputs == "inputs" else f"all {n**2:,} pairs of {inputs}"

    def _patches(self, subject: Route, part: EdgePart) -> Iterator[EdgePatch]:
        """Some pairs of inputs at a time, with each set of edges."""
        inputs = self.pool.inputs
        bases = len(inputs) if isinstance(subject, CountedEdges) else len(inputs) ** 2
        for start in range(0, bases, AT_ONCE):
            base, source = np.divmod(np.arange(start, min(start + AT_ONCE, bases)), len(inputs))
            if isinstance(subject, CountedEdges):  # their removal needs no source
                base = source = np.arange(start, min(start + AT_ONCE, bases))
            for edges in self._sets(subject, self.pool.edges.of(base)):
                some = np.flatnonzero(edges.any(axis=(1, 2)))
                if len(some):
                    yield EdgePatch(inputs[base[some]], inputs[source[some]], edges[some], part)

    def _sets(self, subject: Route, read: ProgramEdges) -> Iterator[Edges]:
        task = self.pool.pairing.task
        elsewhere = between_positions(task)
        if isinstance(subject, OtherEdges):
            yield ~read.carrying & elsewhere
        elif isinstance(subject, GatheredEdges):
            yield read.gathered[subject.aggregates] & elsewhere
        else:
            for query in task.loss_positions:
                row = np.zeros_like(read.counted)
                row[:, query] = elsewhere[query]
                if isinstance(subject, CountedEdges):
                    yield from _subsets(row & read.counted, query)
                else:
                    yield row


def enumerator(pairing: Pairing) -> Enumerator:
    """All pairs of the inputs of a pairing, which has all that a task has."""
    pool, task = pool_of(pairing), pairing.task
    every_sequence = is_every_sequence(task, pairing.ids[pool.inputs]) and task.padding is None
    attend_once = all(_attends_once(studied) for studied in (pairing.reference, pairing.learned))
    return Enumerator(pool, every_sequence and attend_once and task.n_ctx <= MOST_COUNTED)


def _attends_once(studied: StudiedModel) -> bool:
    """Whether a single layer moves anything between positions; of foreign modules that is not known."""
    return isinstance(studied.model, HookedModel) and len(studied.attending_layers) == 1


def _subsets(row: Bool[np.ndarray, "input query key"], query: int) -> Iterator[Edges]:
    """Every set of the edges of one row that are there on all its inputs."""
    keys = np.flatnonzero(row[:, query].any(axis=0))
    for number in range(1, 2 ** len(keys)):
        chosen: Int[np.ndarray, " key"] = keys[(number >> np.arange(len(keys))) & 1 == 1]
        edges = np.zeros_like(row)
        edges[:, query, chosen] = row[:, query][:, chosen].all(axis=1, keepdims=True)
        yield edges
