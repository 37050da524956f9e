"""Claims on routes, on all pairs of inputs that a task has: then nothing is left to chance.

Along which edges values are gathered is known on each input. So the questions of such a claim are the pairs of
inputs. Keys, queries and counted edges are patched along some of many edges, one row of attention at a time: the
keys of the row and each key alone, the query, and every set of the counted edges. The edges of several rows at
once are too many.

Where a single layer attends in both models, there is nothing else to ask: the answer at a position follows from
its own row, and what another position gives to it follows from the token there. Then to patch some keys is to
patch all of them from the input that has their tokens, if all sequences of tokens are inputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Bool

from rasplens.compare.claims.claim import Enumerated
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.claims.edges.pool import Pool, pool_of
from rasplens.compare.claims.edges.program_edges import Edges, ProgramEdges, between_positions
from rasplens.compare.claims.edges.questions import (
    CountedEdges,
    GatheredEdges,
    Keys,
    OtherEdges,
    Questions,
    Route,
    in_words,
)
from rasplens.compare.claims.trials.independent import Trials, no_trials, one_of_each
from rasplens.compare.pairing.inputs import inputs_in_words, is_every_sequence
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.model.hooked import HookedModel
from rasplens.model.interventions import EdgePart

AT_ONCE = 8_192
"""Pairs of inputs that are asked about at a time."""

MOST_KEPT = 2_000
"""Of all questions so many are kept, in which classes of inputs are looked for."""

EdgeSet = Bool[np.ndarray, "query key"]
"""Edges between positions of a task."""


@dataclass(frozen=True, eq=False)
class Enumerator:
    """All pairs of a task's inputs, to ask about.

    Attributes:
        pool: The inputs on which model and program agree.
        rows_are_all: Whether rows of attention, each by itself, are all that there is to ask about keys.
    """

    pool: Pool
    rows_are_all: bool

    def enumerated(self, questions: Questions, heads: Sequence[Head] | None) -> Enumerated | None:
        """A claim on routes, on all pairs.

        Args:
            questions: Some questions about it.
            heads: The learned heads in which edges are patched; None for all.

        Returns:
            None where there are more of them than the config enumerates, or none can be asked.
        """
        subject, part, n_inputs = questions.subject, questions.patch.part, len(self.pool.inputs)
        n_patches = n_inputs if isinstance(subject, CountedEdges) else n_inputs**2
        pairing, asked, wrong, example = self.pool.pairing, 0, 0, ""
        some, rng = no_trials(pairing.answered), np.random.default_rng(0)
        if self._n_sets(subject) * n_patches > pairing.config.enumerated:
            return None
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
            base, source = patch.base[rows], patch.source[rows]
            found = one_of_each(pairing.answered, base, given == posed.expected[rows], counts, rng, source)
            some = _mixed(some, found, asked, rng)
        if not asked:
            return None
        return Enumerated(self._every(subject), asked, wrong, example, self._is_all(subject), some)

    def _is_all(self, subject: Route) -> bool:
        """Whether there is nothing to ask about a claim beside the sets of edges that are patched."""
        return self.rows_are_all or isinstance(subject, OtherEdges | GatheredEdges)

    def _every(self, subject: Route) -> str:
        n, pairing = len(self.pool.inputs), self.pool.pairing
        which = "" if n == pairing.n_inputs else " that it answers as the program does"
        inputs = f"{inputs_in_words(pairing.task, pairing.ids)}{which}"
        one_by_one = "" if self._is_all(subject) else ", row by row"
        if isinstance(subject, CountedEdges):
            return f"all {n:,} {inputs}{one_by_one}"
        of = "" if inputs == "inputs" else f" of {inputs}"
        return f"all {n**2:,} pairs{of}{one_by_one}"

    def _patches(self, subject: Route, part: EdgePart) -> Iterator[EdgePatch]:
        """Some pairs of inputs at a time, with each set of edges."""
        inputs = self.pool.inputs
        bases = len(inputs) if isinstance(subject, CountedEdges) else len(inputs) ** 2
        for start in range(0, bases, AT_ONCE):
            base, source = np.divmod(np.arange(start, min(start + AT_ONCE, bases)), len(inputs))
            if isinstance(subject, CountedEdges):  # their removal needs no source
                base = source = np.arange(start, min(start + AT_ONCE, bases))
            read = self.pool.edges.of(base)
            for some in self._sets(subject):
                edges = self._along(subject, read, some)
                which = np.flatnonzero(edges.any(axis=(1, 2)))
                if len(which):
                    yield EdgePatch(inputs[base[which]], inputs[source[which]], edges[which], part)

    def _along(self, subject: Route, read: ProgramEdges, some: EdgeSet) -> Edges:
        """The edges of a set that a claim is about, on some inputs."""
        if isinstance(subject, OtherEdges):
            return ~read.carrying & some
        if isinstance(subject, GatheredEdges):
            return read.gathered[subject.aggregates] & some
        if isinstance(subject, CountedEdges):  # a smaller set is asked about by itself
            return some & ~(some & ~read.counted).any(axis=(1, 2), keepdims=True)
        return np.broadcast_to(some, read.counted.shape)

    def _n_sets(self, subject: Route) -> int:
        """How many sets of edges are patched, each by itself."""
        if isinstance(subject, CountedEdges):
            return sum(2 ** int(row.sum()) - 1 for row in self._rows)
        return sum(1 for _ in self._sets(subject))

    def _sets(self, subject: Route) -> Iterator[EdgeSet]:
        if isinstance(subject, OtherEdges | GatheredEdges):
            yield between_positions(self.pool.pairing.task)
            return
        for row in self._rows:
            if isinstance(subject, CountedEdges):
                yield from _subsets(row)
            else:
                yield row
            if isinstance(subject, Keys) and not self.rows_are_all:
                yield from _each(row)

    @property
    def _rows(self) -> list[EdgeSet]:
        """The edges from each position that there is anything to ask about."""
        task = self.pool.pairing.task
        elsewhere = between_positions(task)
        queries = task.loss_positions if self.rows_are_all else range(task.n_ctx)
        rows = [elsewhere & (np.arange(task.n_ctx) == query)[:, None] for query in queries]
        return [row for row in rows if row.any()]


def enumerator(pairing: Pairing) -> Enumerator:
    """All pairs of the inputs of a pairing, which has all that a task has."""
    pool, task = pool_of(pairing), pairing.task
    every_sequence = is_every_sequence(task, pairing.ids[pool.inputs]) and task.padding is None
    attend_once = all(_attends_once(studied) for studied in (pairing.reference, pairing.learned))
    return Enumerator(pool, every_sequence and attend_once)


def _mixed(some: Trials, found: Trials, n_before: int, rng: np.random.Generator) -> Trials:
    """Some of all trials so far, at random: those that were kept of the ones before, and of those that are found.

    Args:
        some: Kept of those before.
        found: Others.
        n_before: How many there are with these.
        rng: Draws them.
    """
    n = min(MOST_KEPT, n_before)
    new = int(rng.hypergeometric(len(found), n_before - len(found), n))
    kept = rng.permutation(len(some))[: n - new], rng.permutation(len(found))[:new]
    return some.of(kept[0]).and_more(found.of(kept[1]))


def _attends_once(studied: StudiedModel) -> bool:
    """Whether a single layer moves anything between positions; of foreign modules that is not known."""
    return isinstance(studied.model, HookedModel) and len(studied.attending_layers) == 1


def _subsets(edges: EdgeSet) -> Iterator[EdgeSet]:
    """Every set of some edges but the empty one."""
    of = list(_each(edges))
    for which in product((False, True), repeat=len(of)):
        if any(which):
            yield np.any([one for one, is_in in zip(of, which, strict=True) if is_in], axis=0)


def _each(edges: EdgeSet) -> Iterator[EdgeSet]:
    """Each edge by itself."""
    for place in np.argwhere(edges):
        one = np.zeros_like(edges)
        one[tuple(place)] = True
        yield one
