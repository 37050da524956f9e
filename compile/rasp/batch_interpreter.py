"""The meaning of RASP on many sequences at once: every function is called once for each value that it is given.

It says what `interpreter.run` says, from the same definitions and apart from the compiler, and a hundred times
faster: sequences are arrays of codes, and functions, predicates and means are tables of those. A table is filled
in as values are met. The plain interpreter remains the ground truth: `verify` asks it about some of the sequences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compile import rasp
from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp.interpreter import best_score, expressions, linear_form, mean, of_length
from rasplens.compile.rasp.language import Encoding, Value
from rasplens.compile.rasp.values import as_number, plain, value_key

UNDEFINED = 0
"""The code of RASP's undefined value, None."""

UNKNOWN, FAILS = -2, -1
"""Entries of tables: not computed yet, and where a function raises."""

MOST_ENTRIES = 2**22
"""The most entries of a table over all pairs of values; a larger one keeps only the pairs that occur."""

PAIRS = 3
"""The number of axes of an array over sequences, queries and keys."""

MOST_CELLS = 2**22
"""The most cells of a selector's matrices that are computed at once."""

Codes = Int[np.ndarray, "batch pos"]
Matrices = Bool[np.ndarray, "#batch pos pos"]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What is known of an expression of a program on the sequences that the program is asked for.

    Attributes:
        expr: The expression.
        codes: Its values, as places in `values`; 0 where it is undefined.
        values: The first is None.
        fails: Where it fails, or reads what fails.
    """

    expr: rasp.SOp
    codes: Codes
    values: Sequence[Value]
    fails: Bool[np.ndarray, "batch pos"]


class _Batch:
    """Sequences of one length, what has been found of each expression on them, and where one failed.

    Attributes:
        fails: On which sequences some expression failed somewhere.
        failing: The positions at which the expression at hand fails, of a selector the queries.
        reads_failures: By expression, the positions at which it fails, or reads what fails.
    """

    def __init__(self, ids: Int[np.ndarray, "batch pos"], visible: Bool[np.ndarray, "pos pos"]) -> None:
        self.ids, self.visible = ids, visible
        self.fails = np.zeros(len(ids), dtype=bool)
        self.failing = np.zeros(ids.shape, dtype=bool)
        self.reads_failures: dict[int, Bool[np.ndarray, "batch pos"]] = {}
        self.found: dict[int, Any] = {}

    def seen(self, selector: rasp.RASPExpr) -> Matrices:
        """Return the keys that a selector selects among those that are visible: one matrix for each sequence."""
        return np.broadcast_to(self.found[id(selector)] & self.visible, (len(self.ids), *self.visible.shape))

    def noting_failures(self, found: Int[np.ndarray, "#batch ..."]) -> Int[np.ndarray, "#batch ..."]:
        """Note failures, and return the codes with `UNDEFINED` in their place.

        A failure on a pair that is not visible counts for the sequence alone.
        """
        fails = found == FAILS
        if fails.any():
            self.fails |= fails.reshape(len(found), -1).any(axis=1)
            self.failing |= (fails & self.visible).any(axis=2) if fails.ndim == PAIRS else fails
            found = np.where(fails, UNDEFINED, found)
        return found

    def note_what_reads_failures(self, expr: rasp.RASPExpr) -> None:
        """Notes where an expression fails, or reads what fails; to be called behind its evaluation."""
        noted = self.failing
        for part in expr.children:
            of_part = self.reads_failures[id(part)]
            if of_part.any():
                noted = noted | self._reaching(expr, part, of_part)
        self.reads_failures[id(expr)] = noted
        self.failing = np.zeros(self.ids.shape, dtype=bool)

    def _reaching(
        self, expr: rasp.RASPExpr, part: rasp.RASPExpr, failing: Bool[np.ndarray, "batch pos"]
    ) -> Bool[np.ndarray, "batch pos"]:
        """The positions at which an expression reads a part of it where that fails."""
        if isinstance(expr, rasp.Aggregate) and part is not expr.selector:
            return (self.seen(expr.selector) & failing[:, None, :]).any(axis=2)
        if isinstance(expr, rasp.Select | rasp.SelectBest):
            at_queries = failing & (part is expr.queries)
            of_keys = expr.keys, expr.score if isinstance(expr, rasp.SelectBest) else expr.keys
            is_elsewhere = any(part is one for one in of_keys)  # and perhaps the queries as well
            return at_queries | (self.visible & failing[:, None, :] & is_elsewhere).any(axis=2)
        return failing


class BatchInterpreter:
    """A program with the tables that it has been found to need.

    Args:
        program: An s-op.
        vocab: The tokens; sequences are given as their ids.
        visible: Boolean `[query, key]`, at least as long as the sequences: what selectors may see.
        given: Expressions that are not evaluated again; all sequences are then those that they are given on.
    """

    def __init__(
        self,
        program: rasp.SOp,
        vocab: Sequence[Value],
        visible: Bool[np.ndarray, "query key"],
        given: Sequence[Evaluated] = (),
    ) -> None:
        self.program, self.visible = program, visible
        self._given = {id(one.expr): one for one in given}
        self._ordered = expressions(program, self._given)
        self._values = {id(expr): _Values() for expr in self._ordered}
        self._tables = {id(expr): _Table() for expr in self._ordered}
        self._score_tables = {id(expr): _Table() for expr in self._ordered if isinstance(expr, rasp.SelectBest)}
        self._vocab = tuple(vocab)
        for place, one in self._given.items():
            if place in self._values:
                self._values[place].known = list(one.values)

    @property
    def values(self) -> list[Value]:
        """By code, the values of the program that have been met; the first is None."""
        return self._values[id(self.program)].known

    def __call__(self, ids: Int[np.ndarray, "batch pos"]) -> tuple[Codes, Bool[np.ndarray, " batch"]]:
        """The codes of the program's values on sequences of one length, and on which it is undefined as a whole.

        Where it is, the codes mean nothing.
        """
        codes, fails, _ = self._in_parts(ids)
        return codes, fails

    def where_defined(self, ids: Int[np.ndarray, "batch pos"]) -> tuple[Codes, Bool[np.ndarray, "batch pos"]]:
        """The codes of the program's values, and at which positions nothing fails that these read.

        Also on sequences on which the program is undefined as a whole.
        """
        codes, _, is_defined = self._in_parts(ids)
        return codes, is_defined

    def _in_parts(
        self, ids: Int[np.ndarray, "batch pos"]
    ) -> tuple[Codes, Bool[np.ndarray, " batch"], Bool[np.ndarray, "batch pos"]]:
        """The codes, on which sequences anything fails, and at which positions nothing does that is read."""
        at_once = max(1, MOST_CELLS // ids.shape[1] ** 2)
        starts = range(0, max(1, len(ids)), at_once)
        batches = [self._evaluated(ids[start : start + at_once], start) for start in starts]
        result = id(self.program)
        codes = [np.broadcast_to(batch.found[result], batch.ids.shape) for batch in batches]
        is_defined = [~batch.reads_failures[result] for batch in batches]
        return np.concatenate(codes), np.concatenate([b.fails for b in batches]), np.concatenate(is_defined)

    def selections(
        self, ids: Int[np.ndarray, "batch pos"]
    ) -> tuple[list[tuple[rasp.Aggregate | rasp.SelectorWidth, Matrices]], Bool[np.ndarray, " batch"]]:
        """Return the program's `selections`, as the interpreter does: by aggregate and width, a matrix a sequence.

        Of what is given there is none. Also on which sequences the program is undefined as a whole: there the
        matrices mean nothing.
        """
        batch = self._evaluated(ids)
        evaluated = (one for one in self._ordered if id(one) not in self._given)
        reading = (one for one in evaluated if isinstance(one, rasp.Aggregate | rasp.SelectorWidth))
        return [(expr, batch.seen(expr.selector)) for expr in reading], batch.fails

    def _evaluated(self, ids: Int[np.ndarray, "batch pos"], start: int = 0) -> _Batch:
        batch, rows = _Batch(ids, self.visible[: ids.shape[1], : ids.shape[1]]), slice(start, start + len(ids))
        for expr in self._ordered:
            if given := self._given.get(id(expr)):
                batch.found[id(expr)] = given.codes[rows]
                batch.reads_failures[id(expr)] = given.fails[rows]
                batch.fails |= given.fails[rows].any(axis=1)
                continue
            batch.found[id(expr)] = self._evaluate(expr, batch)
            batch.note_what_reads_failures(expr)
        return batch

    def _code(self, expr: rasp.RASPExpr, value: Value) -> int:
        is_numerical = isinstance(expr, rasp.SOp) and expr.encoding is Encoding.NUMERICAL
        return self._values[id(expr)].code(as_number(value) if is_numerical else value)

    def _applied(
        self, expr: rasp.RASPExpr, function: Callable[..., Value], batch: _Batch, *inputs: rasp.RASPExpr
    ) -> Codes:
        """The function of each position's values, where all are defined."""
        given = [batch.found[id(one)] for one in inputs]
        values = [self._values[id(one)].known for one in inputs]

        def result(*codes: int) -> int:
            if UNDEFINED in codes:
                return UNDEFINED
            try:
                found = plain(function(*(known[code] for known, code in zip(values, codes, strict=True))))
            except Exception:
                return FAILS
            return self._code(expr, found)

        return batch.noting_failures(self._tables[id(expr)].of(given, [len(known) for known in values], result))

    @singledispatchmethod
    def _evaluate(self, expr: rasp.RASPExpr, batch: _Batch) -> Any:
        """Codes `[batch, pos]` of an s-op, matrices `[batch, query, key]` of a selector."""
        try:
            found = of_length(expr, batch.ids.shape[1])
        except UndefinedValue:
            batch.fails[:], batch.failing[:] = True, True
            found = [None] * batch.ids.shape[1]
        if isinstance(expr, rasp.Selector):
            return np.array(found, dtype=bool).reshape(1, *batch.visible.shape)
        return np.array([[self._code(expr, value) for value in found]])

    @_evaluate.register
    def _(self, expr: rasp.TokensType, batch: _Batch) -> Codes:
        return np.array([self._code(expr, token) for token in self._vocab])[batch.ids]

    @_evaluate.register
    def _(self, expr: rasp.Map, batch: _Batch) -> Codes:
        return self._applied(expr, expr.f, batch, expr.inner)

    @_evaluate.register
    def _(self, expr: rasp.SequenceMap, batch: _Batch) -> Codes:
        return self._applied(expr, expr.f, batch, expr.fst, expr.snd)

    @_evaluate.register
    def _(self, expr: rasp.LinearSequenceMap, batch: _Batch) -> Codes:
        function = linear_form(expr) if expr.encoding is Encoding.NUMERICAL else expr.f
        return self._applied(expr, function, batch, expr.fst, expr.snd)

    @_evaluate.register
    def _(self, expr: rasp.Where, batch: _Batch) -> Codes:
        parts = expr.condition, expr.then, expr.otherwise
        condition, then, otherwise = (self._values[id(part)].known for part in parts)
        holds = np.array([bool(value) for value in condition])[batch.found[id(expr.condition)]]
        branches = [
            np.array([self._code(expr, value) for value in known])[batch.found[id(part)]]
            for part, known in ((expr.then, then), (expr.otherwise, otherwise))
        ]
        return np.where(batch.found[id(expr.condition)] == UNDEFINED, UNDEFINED, np.where(holds, *branches))

    @_evaluate.register
    def _(self, expr: rasp.SelectorWidth, batch: _Batch) -> Codes:
        counts = batch.seen(expr.selector).sum(axis=2)
        return np.array([self._code(expr, count) for count in range(batch.ids.shape[1] + 1)])[counts]

    @_evaluate.register
    def _(self, expr: rasp.Aggregate, batch: _Batch) -> Codes:
        known, codes = self._values[id(expr.sop)].known, batch.found[id(expr.sop)]
        selected = np.where(batch.seen(expr.selector), codes[:, None, :], UNKNOWN)
        highest = selected.max(axis=2)
        lowest = np.where(selected == UNKNOWN, len(known), selected).min(axis=2)
        default = self._code(expr, expr.default)
        # A row that selects one value, however often, has that value: it is the last of the table for no value.
        alone = np.array([*(self._code(expr, value) for value in known), default])
        found = alone[np.where(highest == UNKNOWN, len(known), highest)]
        mixed = (highest != UNKNOWN) & (highest != lowest)

        def mean_code(row: tuple[int, ...]) -> int:
            try:
                return self._code(expr, mean([known[code] for code in row if code != UNKNOWN]))
            except UndefinedValue:
                return FAILS

        found[mixed] = self._tables[id(expr)].of_rows(np.sort(selected[mixed], axis=1), mean_code)
        return batch.noting_failures(found)

    @_evaluate.register
    def _(self, expr: rasp.Select, batch: _Batch) -> Matrices:
        return self._matches(expr, batch)

    @_evaluate.register
    def _(self, expr: rasp.SelectBest, batch: _Batch) -> Matrices:
        scores, known = self._scores(expr, batch)
        candidates = self._matches(expr, batch) & batch.visible & (scores != UNDEFINED)
        places = _places([known[code] for code in np.unique(scores) if code != UNDEFINED])
        if places is None:
            return self._best_of_each(expr, candidates, scores, known, batch)
        ranks = np.array([places.get(value_key(value), -1) for value in known])[scores]
        ranks = np.where(candidates, ranks, -1)
        return candidates & (ranks == ranks.max(axis=2, keepdims=True))

    def _scores(
        self, expr: rasp.SelectBest, batch: _Batch
    ) -> tuple[Int[np.ndarray, "#batch #pos pos"], list[Value]]:
        """The codes of scores, `[batch, query, key]`, and the scores by code."""
        score = expr.score
        if isinstance(score, rasp.SOp):
            return batch.found[id(score)][:, None, :], self._values[id(score)].known

        def scored(key: Value, query: Value) -> int:
            return self._code(expr, plain(score(key, query))) if expr.predicate(key, query) else UNDEFINED

        return self._of_pairs(expr, self._score_tables[id(expr)], scored, batch), self._values[id(expr)].known

    def _best_of_each(
        self,
        expr: rasp.SelectBest,
        candidates: Matrices,
        scores: Int[np.ndarray, "#batch #pos pos"],
        known: list[Value],
        batch: _Batch,
    ) -> Matrices:
        """Where not all scores can be compared with each other: row by row."""
        candidates = np.broadcast_to(candidates, (len(batch.ids), *candidates.shape[1:]))
        scores, best = np.broadcast_to(scores, candidates.shape), np.zeros_like(candidates)
        for i, query in np.ndindex(candidates.shape[:2]):
            keys = np.flatnonzero(candidates[i, query])
            mine = [known[scores[i, query, key]] for key in keys]
            try:
                highest = best_score(expr, mine)
            except UndefinedValue:
                batch.fails[i], batch.failing[i, query] = True, True
                continue
            best[i, query, keys] = [score == highest for score in mine]
        return best

    @_evaluate.register
    def _(self, expr: rasp.SelectorAnd, batch: _Batch) -> Matrices:
        return batch.found[id(expr.fst)] & batch.found[id(expr.snd)]

    @_evaluate.register
    def _(self, expr: rasp.SelectorOr, batch: _Batch) -> Matrices:
        return batch.found[id(expr.fst)] | batch.found[id(expr.snd)]

    @_evaluate.register
    def _(self, expr: rasp.SelectorNot, batch: _Batch) -> Matrices:
        return ~batch.found[id(expr.inner)]

    def _matches(self, expr: rasp.Select | rasp.SelectBest, batch: _Batch) -> Matrices:
        def holds(key: Value, query: Value) -> int:
            return bool(expr.predicate(key, query))

        return self._of_pairs(expr, self._tables[id(expr)], holds, batch).astype(bool)

    def _of_pairs(
        self,
        expr: rasp.Select | rasp.SelectBest,
        table: "_Table",
        function: Callable[[Value, Value], int],
        batch: _Batch,
    ) -> Int[np.ndarray, "#batch pos pos"]:
        """A code for every key and query, `[batch, query, key]`; undefined where one of them is."""
        keys, queries = (self._values[id(part)].known for part in (expr.keys, expr.queries))

        def result(key: int, query: int) -> int:
            if UNDEFINED in (key, query):
                return UNDEFINED
            try:
                return function(keys[key], queries[query])
            except Exception:
                return FAILS

        given = [batch.found[id(expr.keys)][:, None, :], batch.found[id(expr.queries)][:, :, None]]
        return batch.noting_failures(table.of(given, [len(keys), len(queries)], result))


class _Values:
    """The values of one expression, by code in the order in which they are met."""

    def __init__(self) -> None:
        self.known: list[Value] = [None]
        self._codes: dict[Any, int] = {}

    def code(self, value: Value) -> int:
        if value is None:
            return UNDEFINED
        try:
            key = value_key(value)
            hash(key)
        except TypeError:
            key = (list, id(value))  # not hashable: no other object is taken to be the same value
        if key not in self._codes:
            self._codes[key] = len(self.known)
            self.known.append(value)
        return self._codes[key]


class _Table:
    """Results by codes, filled in as they are asked for."""

    def __init__(self) -> None:
        self._dense = np.full((0,), UNKNOWN, dtype=np.int32)
        self._met: dict[tuple[int, ...], int] = {}

    def of(self, given: Sequence[Int[np.ndarray, "..."]], sizes: Sequence[int], result: Callable[..., int]) -> Any:
        """The result for the codes at each place of arrays that broadcast together.

        Args:
            given: The arrays.
            sizes: How many codes there are for each.
            result: From one code for each.
        """
        if np.prod(sizes) > MOST_ENTRIES:
            broadcast = np.broadcast_arrays(*given)
            rows = np.stack([codes.ravel() for codes in broadcast], axis=1)
            return self.of_rows(rows, lambda row: result(*row)).reshape(broadcast[0].shape)
        if self._dense.shape != tuple(sizes):
            grown = np.full(sizes, UNKNOWN, dtype=np.int32)
            grown[tuple(map(slice, self._dense.shape))] = (
                self._dense if self._dense.ndim == len(sizes) else UNKNOWN
            )
            self._dense = grown
        found = self._dense[tuple(given)]
        unknown = found == UNKNOWN
        if unknown.any():
            met = np.unique(
                np.ravel_multi_index([codes[unknown] for codes in np.broadcast_arrays(*given)], tuple(sizes))
            )
            for codes in zip(*(part.tolist() for part in np.unravel_index(met, tuple(sizes))), strict=True):
                self._dense[codes] = result(*codes)
            found = self._dense[tuple(given)]
        return found

    def of_rows(
        self, rows: Int[np.ndarray, "row code"], result: Callable[[tuple[int, ...]], int]
    ) -> Int[np.ndarray, " row"]:
        """The result for each row of codes."""
        if not len(rows):
            return np.zeros(0, dtype=int)
        first, which = _distinct(rows)
        results = []
        for row in map(tuple, rows[first].tolist()):
            if row not in self._met:
                self._met[row] = result(row)
            results.append(self._met[row])
        return np.array(results)[which]


def _distinct(rows: Int[np.ndarray, "row code"]) -> tuple[Int[np.ndarray, " distinct"], Int[np.ndarray, " row"]]:
    """Where each distinct row stands first, and which of those each row is."""
    shifted = rows - rows.min()
    base = int(shifted.max()) + 1
    numbers, below = np.zeros(len(rows), dtype=np.int64), 1
    for column in shifted.T:
        if below * base >= 2**62:
            numbers = np.unique(numbers, return_inverse=True)[1]
            below = int(numbers.max()) + 1
        numbers, below = numbers * base + column, below * base
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    return first, which


def _places(scores: Sequence[Value]) -> dict[Any, int] | None:
    """By its key, the place of each score among all; equal ones share theirs. None if some cannot be compared."""
    are_numbers = all(isinstance(score, bool | int | float) and score == score for score in scores)
    if not (are_numbers or all(isinstance(score, str) for score in scores)):
        return None
    places: dict[Any, int] = {}
    place, before = -1, None
    for score in sorted(scores):
        place += before is None or score != before
        places[value_key(score)], before = place, score
    return places
