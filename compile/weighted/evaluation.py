"""The meaning of weighted programs, in numpy or JAX: votes on inputs, also with a part of some edges patched.

An edge is patched as in a model: values, keys or queries as they are on another input, in all mixtures at once.
S-ops of RASP are computed by its interpreter, and are not patched themselves.
"""

from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compile.rasp.batch_interpreter import UNDEFINED, BatchInterpreter
from rasplens.compile.rasp.language import SOp, Value
from rasplens.compile.weighted.language import Mix, Term, Variable, Vote, Votes, Weigh, numbers_of, sops_of
from rasplens.compile.weighted.tables import HIDDEN, Numbers
from rasplens.model.forward import Array
from rasplens.model.interventions import EdgePart


@dataclass(frozen=True, eq=False)
class Inputs:
    """The s-ops of a program on inputs.

    Attributes:
        values: By s-op's place in `sops_of`, the values that it takes; the first is None.
        codes: By the same, the place of its value at each position, `[input, pos]`.
        visible: What each query sees, `[query, key]`.
        rows: The positions at which votes are counted.
    """

    values: tuple[tuple[Value, ...], ...]
    codes: tuple[Int[Array, "input pos"], ...]
    visible: Bool[np.ndarray, "query key"]
    rows: tuple[int, ...]

    def of(self, inputs: Any) -> "Inputs":
        """Return some of the inputs, of the same values."""
        return replace(self, codes=tuple(codes[inputs] for codes in self.codes))


@dataclass(frozen=True, eq=False)
class Patch:
    """A part of some edges, taken from other inputs.

    Attributes:
        source: The other inputs, one for each, of the same values: by `Inputs.of` from the same.
        edges: `[input, query, key]`; for queries, any edge of a row stands for the whole row.
        part: Which part.
    """

    source: Inputs
    edges: Bool[Array, "input query key"]
    part: EdgePart


def inputs_of(
    program: Vote,
    ids: Int[np.ndarray, "input pos"],
    vocab: tuple[Value, ...],
    visible: Bool[np.ndarray, "query key"],
    rows: tuple[int, ...],
) -> Inputs:
    """The s-ops of a program on inputs, by RASP's interpreter; undefined ones have no score and no vote.

    Args:
        program: The program.
        ids: The inputs, as places in `vocab`.
        vocab: The tokens.
        visible: What each query sees.
        rows: The positions at which votes are counted.
    """
    read = [_read(sop, ids, vocab, visible) for sop in sops_of(program)]
    return Inputs(tuple(values for values, _ in read), tuple(codes for _, codes in read), visible, rows)


def _read(
    sop: SOp, ids: np.ndarray, vocab: tuple[Value, ...], visible: np.ndarray
) -> tuple[tuple[Value, ...], np.ndarray]:
    reader = BatchInterpreter(sop, vocab, visible)
    codes, is_defined = reader.where_defined(ids)
    return tuple(reader.values), np.where(is_defined, codes, UNDEFINED)


def votes(
    program: Vote,
    inputs: Inputs,
    patch: Patch | None = None,
    numbers: Numbers | None = None,
    xp: ModuleType = np,
) -> Array:
    """Votes for each candidate: `[input, row, candidate]`.

    Args:
        program: The program.
        inputs: Its s-ops on inputs.
        patch: A part of some edges that is taken from others.
        numbers: By name, other numbers than the program's own.
        xp: The array namespace, numpy or `jax.numpy`.
    """
    numbers = numbers_of(program) if numbers is None else numbers
    if patch is None:
        return _Run(program, inputs, numbers, xp).counted()
    source = _Run(program, patch.source, numbers, xp)
    return _Run(program, inputs, numbers, xp, source, patch.edges, patch.part).counted()


def answers(program: Vote, inputs: Inputs, patch: Patch | None = None) -> Int[np.ndarray, "input row"]:
    """The place among the candidates of the one with the most votes; the first of those that tie."""
    return np.asarray(votes(program, inputs, patch)).argmax(axis=-1)


@dataclass
class _Run:
    """One pass over inputs: mixtures and patterns, each computed once."""

    program: Vote
    inputs: Inputs
    numbers: Numbers
    xp: ModuleType
    source: "_Run | None" = None
    edges: Array = None
    part: EdgePart | None = None
    known: dict[int, Any] = field(default_factory=dict)

    def counted(self) -> Array:
        rows = np.array(self.inputs.rows)
        return sum(self._cast(part)[:, rows] for part in self.program.votes.terms)

    def _cast(self, part: Votes) -> Array:
        values = self._values(part.voters)
        gain = part.gain.over(values, self.program.candidates, self.numbers, self.xp)
        return self._shares(part.voters) @ _without_none(gain, values, self.xp)

    def _shares(self, variable: Variable) -> Array:
        """The share of each of a variable's values at every position: `[input, pos, value]`."""
        if id(variable) not in self.known:
            read = self._mixed(variable) if isinstance(variable, Mix) else self._point(variable)
            self.known[id(variable)] = read
        return self.known[id(variable)]

    def _point(self, sop: SOp) -> Array:
        return self.xp.eye(len(self._values(sop)))[self._codes(sop)]

    def _mixed(self, mix: Mix) -> Array:
        pattern, shares = self._pattern(mix.scores), self._shares(mix.sop)
        if self.source is None or self.part != "values":
            return pattern @ shares
        kept, taken = pattern * ~self.edges, pattern * self.edges
        return kept @ shares + taken @ self.source._shares(mix.sop)

    def _pattern(self, scores: Term[Weigh]) -> Array:
        """Attention by scores: `[input, query, key]`; a row that sees nothing attends nowhere."""
        if id(scores) not in self.known:
            own = self._scored(scores, self, self)
            if self.source is not None and self.part == "keys":
                own = self.xp.where(self.edges, self._scored(scores, self.source, self), own)
            if self.source is not None and self.part == "queries":
                rows = self.edges.any(axis=-1)[..., None]
                own = self.xp.where(rows, self._scored(scores, self, self.source), own)
            self.known[id(scores)] = _softmax(self.xp.where(self.inputs.visible, own, HIDDEN), self.xp)
        return self.known[id(scores)]

    def _scored(self, scores: Term[Weigh], keys: "_Run", queries: "_Run") -> Array:
        """The scores of one run's keys for another's queries: `[input, query, key]`."""
        return sum(self._product(part, keys, queries) for part in scores.terms)

    def _product(self, part: Weigh, keys: "_Run", queries: "_Run") -> Array:
        key_values, query_values = keys._values(part.keys), queries._values(part.queries)
        table = part.score.over(key_values, query_values, self.numbers, self.xp)
        table = _without_none(_without_none(table, key_values, self.xp).T, query_values, self.xp).T
        if not isinstance(part.keys, Mix) and not isinstance(part.queries, Mix):
            at_keys, at_queries = keys._codes(part.keys), queries._codes(part.queries)
            return table[at_keys[:, None, :], at_queries[:, :, None]]
        by_query = self.xp.swapaxes(keys._shares(part.keys) @ table, 1, 2)
        return queries._shares(part.queries) @ by_query

    def _values(self, variable: Variable) -> tuple[Value, ...]:
        return self.inputs.values[_place(self.program, variable)]

    def _codes(self, sop: SOp) -> Array:
        return self.inputs.codes[_place(self.program, sop)]


def _place(program: Vote, variable: Variable) -> int:
    """The place of an s-op among those that a program reads; of a mixture, of what is mixed in the end."""
    while isinstance(variable, Mix):
        variable = variable.sop
    return next(place for place, one in enumerate(sops_of(program)) if one is variable)


def _softmax(scores: Array, xp: ModuleType) -> Array:
    """Return attention by scores; none where all keys are hidden."""
    highest = scores.max(axis=-1, keepdims=True)
    some = highest > HIDDEN / 2
    raised = xp.where(some, xp.exp(scores - xp.where(some, highest, 0.0)), 0.0)
    return raised / xp.where(some, raised.sum(axis=-1, keepdims=True), 1.0)


def _without_none(table: Array, values: tuple[Value, ...], xp: ModuleType) -> Array:
    """A table in which None, the undefined value, has 0; values are rows."""
    defined = np.array([value is not None for value in values])
    return xp.where(defined[:, None], table, 0.0)
