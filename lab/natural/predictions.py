"""Predictions of a program when keys, queries or values along edges come from another input, step by step.

A *step* is what one attention pattern of the program does: the aggregates and widths that share a selector. An
edge is a pair of a query and a key position. With *values* from a source along some edges, an aggregate averages
the source's values there; with *keys*, whether an edge is selected is decided by the source's keys (and the base's
queries); with *queries* at some positions, by the source's queries and the base's keys. *Both* is keys and values
together. Everything behind the step is computed anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from rasplens.compile import UndefinedValue, rasp, run
from rasplens.compile.rasp import Selector, SOp, Value
from rasplens.compile.rasp.interpreter import expressions, mean
from rasplens.tasks import Task
from rasplens.tasks.task import NO_ANSWER

KEYS, QUERIES, CARRIED = ("keys", "both"), ("queries",), ("values", "both")
"""What can come from a source, by the names that take it from there."""


@dataclass(frozen=True, eq=False)
class Step:
    """The aggregates and widths of a program that share a selector.

    Attributes:
        selector: What is selected.
        sops: The aggregates and widths.
        depth: How many steps after each other it takes to get there; 1 reads the input alone.
    """

    selector: Selector
    sops: tuple[SOp, ...]
    depth: int

    @property
    def counts(self) -> bool:
        """Whether it only says how many keys are selected: no value is read."""
        return all(isinstance(sop, rasp.SelectorWidth) for sop in self.sops)


def steps_of(program: SOp) -> tuple[Step, ...]:
    """The steps of a program, the first first."""
    depths: dict[int, int] = {}
    found: dict[tuple[int, int], list[SOp]] = {}
    for expr in expressions(program):
        is_step = isinstance(expr, rasp.Aggregate | rasp.SelectorWidth)
        depths[id(expr)] = max((depths[id(child)] for child in expr.children), default=0) + is_step
        if is_step:
            found.setdefault((depths[id(expr)], id(expr.selector)), []).append(expr)
    ordered = sorted(found.items(), key=lambda item: item[0][0])
    return tuple(Step(sops[0].selector, tuple(sops), depth) for (depth, _), sops in ordered)


@dataclass(frozen=True, eq=False)
class Predictions:
    """A program's answers under interventions, on pairs of a base and a source.

    Attributes:
        program: The program.
        task: What it answers.
        bases: Inputs, as ids.
        sources: As many others.
        edges: Boolean `[input, query, key]`: along which edges the source's keys and values are taken.
        rows: Boolean `[input, query]`: where the source's queries are taken, for all keys, since scores only say
            something beside others of the same query.
        asked: Boolean `[loss_pos, token, output]`: which answers the task ever gives where a token stands.
    """

    program: SOp
    task: Task
    bases: np.ndarray
    sources: np.ndarray
    edges: np.ndarray
    rows: np.ndarray
    asked: np.ndarray

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The program's steps."""
        return steps_of(self.program)

    @cached_property
    def selected(self) -> tuple[np.ndarray, ...]:
        """The selections of each step on the bases: boolean `[input, query, key]`."""
        return tuple(
            np.array([run(step.selector, row, mask=self.task.visible) for row in self.task.sequences(self.bases)])
            for step in self.steps
        )

    def carries_content(self, step: Step) -> bool:
        """Whether the values that a step reads depend on the input, and not on the position alone."""
        if step.counts:
            return False
        rows = self.task.sequences(self.bases[:50])
        found = {
            str(
                [run(sop.sop, row, mask=self.task.visible) for sop in step.sops if isinstance(sop, rasp.Aggregate)]
            )
            for row in rows
        }
        return len(found) > 1

    def answers(self, steps: Sequence[Step], of_source: str) -> np.ndarray:
        """Codes of the answers, `[input, loss_pos]`, with some steps patched.

        `NO_ANSWER` stands where the program has none, and where a step selects an edge that it selects on no base.

        Args:
            steps: Those.
            of_source: What comes from the source: `"keys"`, `"values"`, `"both"` or `"queries"`.
        """
        sequences = self.task.sequences(self.bases), self.task.sequences(self.sources)
        edges = (
            self.edges if of_source not in QUERIES else np.repeat(self.rows[..., None], self.task.n_ctx, axis=2)
        )
        pairs = zip(*sequences, edges, strict=True)
        return np.array([self._codes(steps, of_source, *pair) for pair in pairs])

    def is_asked(self, codes: np.ndarray) -> np.ndarray:
        """Which of these answers the task ever gives to the token that stands there; never for `NO_ANSWER`."""
        tokens = self.bases[:, list(self.task.loss_positions)]
        place = np.broadcast_to(np.arange(codes.shape[1]), codes.shape)
        return self.asked[place, tokens, codes]

    def is_given(self, codes: np.ndarray) -> np.ndarray:
        """Which of these answers the task ever gives, to whatever token."""
        return self.asked.any(axis=(0, 1))[codes]

    def _codes(
        self, steps: Sequence[Step], of_source: str, base: list[Value], source: list[Value], edges: np.ndarray
    ) -> list[int]:
        places = list(self.task.loss_positions)
        keys, queries, carried = (edges & (of_source in read) for read in (KEYS, QUERIES, CARRIED))
        pair = _Pair(base, source, keys, queries, self.task.visible)
        try:
            rows = {step: selection(step.selector, pair) & self.task.visible for step in steps}
            fixed = {sop.name: _read(sop, rows[step], carried, pair) for step in steps for sop in step.sops}
            values = run(self.program, base, mask=self.task.visible, set=fixed)
            others = [step for step in self.steps if step not in rows]
            rows |= {step: np.array(self._under(fixed, step.selector, base)) for step in others}
            mixed = [self._mixes(fixed, sop, rows[step], base) for step in others for sop in step.sops]
        except UndefinedValue:
            return [NO_ANSWER] * len(places)
        unusual = [
            (rows[step] & ~on.any(axis=0)).any(axis=1) for step, on in zip(self.steps, self.selected, strict=True)
        ]
        left_out = np.logical_or.reduce([*unusual, *mixed])
        return [NO_ANSWER if left_out[place] else self.task.answer_code(values[place]) for place in places]

    def _under(self, fixed: Mapping[str, list[Value]], expr: rasp.RASPExpr, base: list[Value]) -> list[Any]:
        """Return the values of an expression when some s-ops take given values."""
        known = {part.name for part in expressions(expr) if isinstance(part, SOp)}
        read = {name: values for name, values in fixed.items() if name in known}
        return run(expr, base, mask=self.task.visible, set=read)

    def _mixes(
        self, fixed: Mapping[str, list[Value]], sop: SOp, rows: np.ndarray, base: list[Value]
    ) -> np.ndarray:
        """At which queries an aggregate that is no mean of numbers meets different values."""
        if isinstance(sop, rasp.SelectorWidth) or rasp.is_numerical(sop):
            return np.zeros(len(rows), dtype=bool)
        values = self._under(fixed, sop.sop, base)
        return np.array([len({values[key] for key in np.flatnonzero(row)}) > 1 for row in rows])


def answers_asked(task: Task, n: int = 20_000) -> np.ndarray:
    """Which answers a task ever gives where a token stands: boolean `[loss_pos, token, output]`, from a sample.

    The last output, `NO_ANSWER`, is never asked for.
    """
    ids = task.draw(np.random.default_rng(1), n)
    tokens, codes = ids[:, list(task.loss_positions)], task.target(ids)
    asked = np.zeros((len(task.loss_positions), len(task.vocab), len(task.outputs) + 1), dtype=bool)
    asked[np.broadcast_to(np.arange(codes.shape[1]), codes.shape), tokens, codes] = True
    return asked


@dataclass(frozen=True, eq=False)
class _Pair:
    """A base and a source, and along which edges keys or queries are the source's."""

    base: list[Value]
    source: list[Value]
    keys: np.ndarray
    queries: np.ndarray
    visible: np.ndarray

    def of_base(self, sop: SOp) -> list[Value]:
        return run(sop, self.base, mask=self.visible)

    def of_source(self, sop: SOp) -> list[Value]:
        return run(sop, self.source, mask=self.visible)


def _read(sop: SOp, rows: np.ndarray, carried: np.ndarray, pair: _Pair) -> list[Value]:
    """The values of an aggregate or width, given what is selected and where values are the source's."""
    if isinstance(sop, rasp.SelectorWidth):
        return [int(row.sum()) for row in rows]
    own, other = pair.of_base(sop.sop), pair.of_source(sop.sop)
    result: list[Value] = []
    for row, from_source in zip(rows, carried, strict=True):
        chosen = [other[key] if from_source[key] else own[key] for key in np.flatnonzero(row)]
        result.append(_mean(chosen, rasp.is_numerical(sop)) if chosen else sop.default)
    return result


def _mean(values: list[Value], are_numbers: bool) -> Value:
    """The mean, or None where there is none, such as of different words; behind it, everything is undefined."""
    if any(value is None for value in values) or (not are_numbers and len(set(values)) > 1):
        return None
    return mean(values)


@singledispatch
def selection(selector: Selector, pair: _Pair) -> np.ndarray:
    """Return the selection with the source's keys or queries along some edges: boolean `[query, key]`."""
    raise TypeError(f"{selector!r} has no keys that could be patched.")


@selection.register
def _(selector: rasp.Select, pair: _Pair) -> np.ndarray:
    return _mixed_matches(selector, pair)


@selection.register
def _(selector: rasp.SelectBest, pair: _Pair) -> np.ndarray:
    own, other = _scores(pair.of_base(selector.score)), _scores(pair.of_source(selector.score))
    scores = np.where(pair.keys, other[None, :], own[None, :])
    scores = np.where(_mixed_matches(selector, pair) & pair.visible, scores, -np.inf)
    return (scores == scores.max(axis=1, keepdims=True)) & np.isfinite(scores)


@selection.register
def _(selector: rasp.SelectorAnd, pair: _Pair) -> np.ndarray:
    return selection(selector.fst, pair) & selection(selector.snd, pair)


@selection.register
def _(selector: rasp.SelectorOr, pair: _Pair) -> np.ndarray:
    return selection(selector.fst, pair) | selection(selector.snd, pair)


@selection.register
def _(selector: rasp.SelectorNot, pair: _Pair) -> np.ndarray:
    return ~selection(selector.inner, pair)


def _mixed_matches(selector: rasp.Select | rasp.SelectBest, pair: _Pair) -> np.ndarray:
    keys, queries = pair.of_base(selector.keys), pair.of_base(selector.queries)
    own = _matches(selector, keys, queries)
    with_keys = np.where(pair.keys, _matches(selector, pair.of_source(selector.keys), queries), own)
    return np.where(pair.queries, _matches(selector, keys, pair.of_source(selector.queries)), with_keys)


def _matches(
    selector: rasp.Select | rasp.SelectBest, keys: Sequence[Value], queries: Sequence[Value]
) -> np.ndarray:
    return np.array([[_holds(selector, key, query) for key in keys] for query in queries])


def _holds(selector: rasp.Select | rasp.SelectBest, key: Value, query: Value) -> bool:
    return key is not None and query is not None and bool(selector.predicate(key, query))


def _scores(values: Sequence[Value]) -> np.ndarray:
    return np.array([-np.inf if value is None else float(value) for value in values])
