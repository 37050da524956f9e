"""Questions on a model's routes: pairs of inputs, edges between their positions, and the program's answers.

The compiled model is the oracle: with the same part of the same edges patched, it answers what any model answers
that moves the same information along the same edges.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.claims.claim import Subject
from rasplens.compare.claims.edges.compiled_heads import heads_along
from rasplens.compare.claims.edges.edge_patching import EdgePatch
from rasplens.compare.claims.edges.pool import Pool, pool_of
from rasplens.compare.claims.edges.program_edges import Aggregates, Edges, ProgramEdges, between_positions
from rasplens.compare.claims.trials.independent import PairsFrom
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compare.pairing.inputs import balanced
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head
from rasplens.model import random_streams
from rasplens.model.interventions import EdgePart
from rasplens.tasks.task import Ids


@dataclass(frozen=True)
class Route(Subject):
    """The subject of a claim on routes between positions, or on what decides them."""

    level = "routes"


@dataclass(frozen=True)
class GatheredEdges(Route):
    """Values are gathered along the edges of a selector.

    Attributes:
        aggregates: The names of the aggregates that share it.
        heads: Of the compiled model, those that attend along these edges and no others, and compute one of the
            aggregates; where none is called so, all that attend so.
    """

    tested = "With values along these edges from another input"

    aggregates: Aggregates
    heads: tuple[Head, ...]

    def __str__(self) -> str:
        if len(self.aggregates) == 1:
            return f"{self.aggregates[0]} gathers along its selector's edges"
        return f"{' and '.join(self.aggregates)} gather along their selector's edges"


@dataclass(frozen=True)
class OtherEdges(Route):
    """No value is gathered along an edge of no selector."""

    tested = "With values along all other edges from another input"

    def __str__(self) -> str:
        return "nothing is gathered along other edges"


@dataclass(frozen=True)
class Keys(Route):
    """The content of keys decides what is selected."""

    tested = "With keys from another input"

    def __str__(self) -> str:
        return "keys decide as in the program"


@dataclass(frozen=True)
class Queries(Route):
    """The content of queries decides what is selected."""

    tested = "With queries from another input"

    def __str__(self) -> str:
        return "queries decide as in the program"


@dataclass(frozen=True)
class CountedEdges(Route):
    """The edges that a selector width counts are counted."""

    tested = "With some counted edges masked"

    def __str__(self) -> str:
        return "the edges that are counted are those of the program"


SHARES: Final = (1.0, 0.5, 0.2, 0.05)
"""Of the edges between positions, the share that is patched in a question about keys or queries, drawn anew for
each: many edges ask much, few edges change so little that the task could still ask for it."""

NONE_AFTER: Final = 4
"""After so many times the configured pairs without one that changes (or keeps) an answer, there are none."""

NEAREST_OF: Final = 8
"""Every other source is the one most like its base of so many: what changes is small."""

MOST_EDGES: Final = 4
"""Of an example, so many edges are named."""

Draw = Callable[[np.random.Generator, ProgramEdges], Edges]


@dataclass(frozen=True, eq=False)
class Questions:
    """Pairs of inputs with edges to patch, and what the program answers then.

    Attributes:
        subject: What they ask about.
        patch: The inputs, by their place in the pairing, and what is patched.
        expected: The compiled model's answers with the edges patched, as the task's codes.
        changes: Where they differ from those on the base itself.
        at_risk: Where the base's own answer is not the source's: an answer that stays by what is patched alone.
        drawn: How many pairs were tried to find these.
        again: So many about other pairs, of such inputs; None for any.
    """

    subject: Route
    patch: EdgePatch
    expected: Int[np.ndarray, "pair answer"]
    changes: Bool[np.ndarray, "pair answer"]
    at_risk: Bool[np.ndarray, "pair answer"]
    drawn: int
    again: "Callable[[PairsFrom | None, int], Questions]"

    def __len__(self) -> int:
        return len(self.patch)

    def of(self, rows: slice | Int[np.ndarray, " row"]) -> "Questions":
        """Some of the questions."""
        expected, changes, at_risk = (part[rows] for part in (self.expected, self.changes, self.at_risk))
        return replace(self, patch=self.patch.of(rows), expected=expected, changes=changes, at_risk=at_risk)


def questions(pairing: Pairing, seed: int, n: int) -> Iterator[Questions]:
    """The questions about each claim that a program makes on the routes of its information.

    Both inputs of a pair are such that the model answers as the program does: what it does elsewhere is another
    program's.

    Args:
        pairing: The models, on inputs.
        seed: Of the pairs.
        n: How many questions that change an answer, and that keep one.
    """
    rng, pool = random_streams.rng(seed, "edge patching"), pool_of(pairing)
    elsewhere = between_positions(pairing.task)
    along, computes = heads_along(pairing), pairing.compiled.heads

    def ask(subject: Route, part: EdgePart, draw: Draw, pairs: PairsFrom | None = None, n: int = n) -> Questions:
        among = pool if pairs is None else pool.among(pairs)
        found, drawn = _asked(among, part, lambda r, e: draw(r, e) & elsewhere, n, rng)
        base, source, edges, expected, changes, at_risk = found
        patch = EdgePatch(base, source, edges, part)
        again = partial(ask, subject, part, draw)
        return Questions(subject, patch, expected, changes, at_risk, drawn, again)

    if not pairing.as_part:
        yield ask(OtherEdges(), "values", lambda _, read: ~read.carrying)
    for aggregates in pool.edges.gathered:
        heads = [head for head, gathers in along.items() if aggregates in gathers]
        named = [head for head in heads if computes[head] in aggregates]
        yield ask(GatheredEdges(aggregates, tuple(named or heads)), "values", _gathered(aggregates))
    yield ask(Keys(), "keys", _some)
    yield ask(Queries(), "queries", _some_rows)
    if pool.edges.counted.any():
        # Not other edges: the rest of a row may need somewhere to go, such as a start token.
        yield ask(CountedEdges(), "attention", lambda r, read: read.counted & _some(r, read))


def in_words(
    inputs: AnsweredInputs,
    patch: EdgePatch,
    expected: Int[np.ndarray, "pair answer"],
    given: Int[np.ndarray, "pair answer"],
    wrong: Bool[np.ndarray, "pair answer"],
) -> str:
    """The first answer that is not the program's; empty where there is none.

    Args:
        inputs: Those that are patched, and that parts are taken from.
        patch: What was patched.
        expected: The program's answers then, as the task's codes.
        given: The model's.
        wrong: Which of them are asked about, and wrong.
    """
    if not wrong.any():
        return ""
    row, answer = np.argwhere(wrong)[0].tolist()
    base, source = int(patch.base[row]), int(patch.source[row])
    places = inputs.task.positions
    edges = [f"{places[query]}←{places[key]}" for query, key in np.argwhere(patch.edges[row]).tolist()]
    along = ", ".join(edges[:MOST_EDGES]) + f" and {len(edges) - MOST_EDGES} more" * (len(edges) > MOST_EDGES)
    taken = "without" if patch.part == "attention" else f"with {patch.part} of {inputs.tokens(source)!r} along"
    said = int(expected[row, answer]), int(given[row, answer])
    return inputs.answered_otherwise(base, f"{taken} {along}", answer, *said)


def _gathered(aggregates: Aggregates) -> Draw:
    return lambda _, read: read.gathered[aggregates]


def _some(rng: np.random.Generator, read: ProgramEdges) -> Edges:
    """Random edges, of each input another share."""
    shares = rng.choice(SHARES, len(read.counted))
    return np.asarray(rng.random(read.counted.shape) < shares[:, None, None])


def _some_rows(rng: np.random.Generator, read: ProgramEdges) -> Edges:
    """All edges from random positions."""
    rows = _some(rng, read)[:, :, :1]
    return np.broadcast_to(rows, read.counted.shape)


def _asked(
    pool: Pool, part: EdgePart, draw: Draw, n: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], int]:
    """Pairs, until enough change an answer and enough keep one, or enough were tried.

    Returns:
        Bases, sources, edges, what is expected, where it changes and where it is at risk, as in `Questions`; and
        how many pairs were tried.
    """
    pairing, inputs, ids = pool.pairing, pool.inputs, pool.pairing.ids[pool.inputs]
    n_answers, most = len(pairing.task.loss_positions), NONE_AFTER * pairing.config.questions
    empty = np.zeros((0, n_answers), dtype=int)
    found = [(inputs[:0], inputs[:0], pool.edges.counted[:0], empty, empty > 0, empty > 0)]
    drawn = changing = keeping = 0
    tried, none_left = pairing.config.questions_tried, min(len(inputs) - 1, len(pool.bases)) < 1
    while not none_left and drawn < tried and min(changing, keeping) < n:
        if drawn >= most and n in (changing, keeping) and not min(changing, keeping):
            break
        base = pool.bases[balanced(pairing.balance, inputs[pool.bases], n, rng)]
        source = _sources(ids, base, pool.sources, rng)
        patch = EdgePatch(inputs[base], inputs[source], draw(rng, pool.edges.of(base)), part)
        posed = pool.posed_by(patch)
        asked, changes, at_risk = posed.asked, posed.changes, posed.at_risk
        answered = patch.base, patch.source, patch.edges, posed.expected, changes, at_risk
        found.append(tuple(array[asked] for array in answered))
        drawn += n
        changing = min(n, changing + int(changes[asked].any(axis=1).sum()))
        keeping = min(n, keeping + int(at_risk[asked].any(axis=1).sum()))
    return [np.concatenate(part) for part in zip(*found, strict=True)], drawn


def _sources(
    ids: Ids, base: np.ndarray, among: Int[np.ndarray, " source"] | None, rng: np.random.Generator
) -> np.ndarray:
    """An input for each base that is another one; every other is the nearest of several."""
    shape = (len(base), NEAREST_OF)
    if among is None:
        several = rng.integers(len(ids) - 1, size=shape)
        several += several >= base[:, None]
    else:
        several = rng.choice(among, shape) if len(among) else np.broadcast_to(base[:, None], shape)
    distance = (ids[several] != ids[base][:, None]).sum(axis=2)
    nearest = np.take_along_axis(several, distance.argmin(axis=1)[:, None], axis=1)[:, 0]
    return np.where(np.arange(len(base)) % 2, several[:, 0], nearest)
