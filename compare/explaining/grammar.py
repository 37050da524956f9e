"""The selectors that a head may have: over variables that are known, the short ones first.

Every selector is a predicate of a key's and a query's value. It is called once for each pair of values. So its
matrix on the sample is a table, looked up; and what looks alike on the sample is one candidate.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.explaining.attended import Matrix
from rasplens.compare.explaining.kinds import Kinds, told_by
from rasplens.compare.explaining.known import Inputs, Known
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED
from rasplens.compile.rasp.values import is_number

MOST_CONSTANTS = 12
"""Of a variable with more values, none is a constant of a predicate."""

MOST_PAIRS = 2_000
"""Of variables with more pairs of values, attention gives no table."""

MOST_TOGETHER = 60
"""Two variables with at most so many values together may be a key or a query in a table."""

TOLD = 0.97
"""Share of the keys of which a table of pairs of variables must tell whether they are selected."""

PASSES = 0.5
"""Share of its keys that must be selected for a pair of values to stand in a table."""

SEVERAL = 0.02
"""Share of the rows with several keys from which the best of them is another selector."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A selector.

    Attributes:
        text: What it is, as Python.
        reads: The variables that the text names.
        matrix: What it selects on the sample, of what is visible.
        cost: How long the text is, in steps.
    """

    text: str
    reads: tuple[Known, ...]
    matrix: Matrix
    cost: float


@dataclass(frozen=True, eq=False)
class _Base:
    """A predicate of one key and one query variable; `Select` and `SelectBest` are made of it."""

    key: Known
    query: Known
    predicate: str
    matrix: Matrix
    cost: float


Counts = Float[np.ndarray, " pair"] | Int[np.ndarray, " pair"]

One = TypeVar("One", _Base, Candidate, "Select")


@dataclass(frozen=True, eq=False)
class _Window:
    """A further condition on keys: their place, or another variable's value."""

    of: Known
    said: Callable[[str, str], str]
    matrix: Bool[np.ndarray, "#input query key"]


@dataclass(frozen=True, eq=False)
class Select(Candidate):
    """A selector of all keys that a predicate holds for.

    Attributes:
        base: The predicate.
        within: The further condition on keys.
    """

    base: _Base
    within: _Window | None


@dataclass(frozen=True, eq=False)
class OwnEdges:
    """Queries that meet the key at their position as it is on another input: no input has such pairs of values.

    Attributes:
        selected: How far the heads select that key, from 0 to 1.
        source: The input of each query.
    """

    selected: Float[np.ndarray, "input pos"]
    source: Int[np.ndarray, " input"]


@dataclass(frozen=True, eq=False)
class Observed:
    """Where heads look. Tables are read off it.

    Attributes:
        name: The heads', in programs.
        rows: The queries that matter.
        selected: How far the heads select each key, from 0 to 1.
        own: The same for keys at a query's own position, of other inputs; None where that is not known.
        kinds: What they tell apart, of all queries and of those that matter; none where that is not known.
    """

    name: str
    rows: Sequence[int]
    selected: Float[np.ndarray, "input query key"]
    own: OwnEdges | None
    kinds: Sequence[Kinds]


def selects(inputs: Inputs, known: Sequence[Known], observed: Observed) -> list[Select]:
    """The selectors of all keys that a predicate holds for, without those that look alike on the rows that matter.

    Args:
        inputs: The sample.
        known: The variables.
        observed: Where the heads look that are explained.
    """
    pairs = [
        (key, query) for key, query in product(known, known) if key is query or not _are_fractions(key, query)
    ]
    bases = [base for key, query in pairs for base in _bases(inputs, key, query)]
    bases += [*_tables(inputs, known, observed), *_of_kinds(inputs, known, observed)]
    bases = unlike(bases, observed.rows)
    return unlike([one for base in bases for one in _selects(inputs, known, base)], observed.rows)


def best_of(known: Sequence[Known], one: Select) -> Iterator[Candidate]:
    """The selectors of the best of the keys that another one selects, by each score; none if there is only one."""
    if (one.matrix.sum(axis=2) > 1).mean() <= SEVERAL or not (one.within is None or _is_place(one.within.of)):
        return
    for score, said in _scores(known):
        yield _best(one, score, said)


def unlike(found: Sequence[One], rows: Sequence[int]) -> list[One]:
    """The cheapest of those that select the same at some queries, in the order of their cost."""
    kept: dict[bytes, One] = {}
    for one in sorted(found, key=lambda one: one.cost):
        kept.setdefault(np.packbits(one.matrix[:, rows]).tobytes(), one)
    return list(kept.values())


def _selects(inputs: Inputs, known: Sequence[Known], base: _Base) -> Iterator[Select]:
    """The predicate alone, and with each window."""
    text = f"rasp.Select({base.key.name}, {base.query.name}, lambda k, q: {base.predicate})"
    reads = base.key, base.query
    yield Select(text, reads, base.matrix, base.cost, base, None)
    if _is_place(base.key) and _is_place(base.query):
        return
    for window in _windows(inputs, known):
        there = f"rasp.Select({window.of.name}, {window.of.name}, lambda k, q: {window.said('k', 'q')})"
        both = base.matrix & window.matrix
        yield Select(
            f"{text} & {there}", tuple(dict.fromkeys((*reads, window.of))), both, base.cost + 0.6, base, window
        )


def _is_place(one: Known) -> bool:
    return one.name == "rasp.indices"


def _best(of: Select, score: Known, said: str) -> Candidate:
    """The selected keys with the highest score."""
    base, window = of.base, of.within
    numbers = -score.numbers() if said.startswith("-") else score.numbers()
    scores = np.where(of.matrix, np.nan_to_num(numbers, nan=-np.inf)[:, None, :], -np.inf)
    highest = scores.max(axis=2, keepdims=True)
    best = of.matrix & (scores == highest) & np.isfinite(highest)
    keys, queries, predicate = base.key.name, base.query.name, base.predicate
    if window is not None:  # a value and its place, compared by both
        keys, queries = (f"rasp.SequenceMap(lambda x, i: (x, i), {one}, rasp.indices)" for one in (keys, queries))
        predicate = f"(lambda k, q: {predicate})(k[0], q[0]) and {window.said('k[1]', 'q[1]')}"
    text = f"rasp.SelectBest({keys}, {queries}, lambda k, q: {predicate}, {said})"
    return Candidate(text, tuple(dict.fromkeys((base.key, base.query, score))), best, base.cost + 0.8)


def _windows(inputs: Inputs, known: Sequence[Known] = ()) -> Iterator[_Window]:
    n, place = inputs.task.n_ctx, inputs.primitives()[1]
    k, q = np.arange(n)[None, None, :], np.arange(n)[None, :, None]
    first = inputs.task.loss_positions[0]
    yield _Window(place, lambda k, q: f"{k} < {q}", k < q)
    yield _Window(place, lambda k, q: f"{k} != {q}", k != q)
    for most in (first, first - 1):
        if most > 1:
            yield _Window(place, partial(_before, most), np.broadcast_to(k < most, (1, n, n)))
    for one in known:
        if one.needs and len(one.own_values) <= MOST_CONSTANTS and not _are_fractions(one):
            for code, value in enumerate(one.values[1:], start=1):
                matrix = np.broadcast_to((one.codes == code)[:, None, :], (len(one.codes), n, n))
                yield _Window(one, partial(_equals, value), matrix)


def _before(most: int, k: str, q: str) -> str:
    return f"{k} < {most}"


def _equals(value: Value, k: str, q: str) -> str:
    return f"{k} == {value!r}"


def _scores(known: Sequence[Known]) -> Iterator[tuple[Known, str]]:
    """Return the scores by which one of several keys is chosen: latest, earliest, largest, smallest."""
    for one in known:
        if _is_place(one) or (one.is_numbers and one.is_ordered):
            yield one, one.name
            yield one, f"-{one.name}"
        elif one.is_ordered:
            for sign in ("", "-"):
                yield one, f"{sign}rasp.Map(lambda x: x if isinstance(x, (int, float)) else None, {one.name})"


def _bases(inputs: Inputs, key: Known, query: Known) -> Iterator[_Base]:
    """The predicates of two variables; of fractions, only with themselves."""
    if key is not query and _are_fractions(key, query):
        return
    longer = 0.2 * (key.cost + query.cost - 2)
    for predicate, cost in _predicates(inputs, key, query):
        if (matrix := _matrix(inputs, key, query, predicate)) is not None:
            yield _Base(key, query, predicate, matrix, cost + longer)


def _predicates(inputs: Inputs, key: Known, query: Known) -> Iterator[tuple[str, float]]:
    n = inputs.task.n_ctx
    if _is_place(key) and _is_place(query):
        yield "True", 1.0
        for text in ("k < q", "k > q", "k != q", "k <= q", "k == q"):
            yield text, 1.3
        yield from ((f"k == q - {c}", 1.5) for c in range(1, n))
        yield from ((f"k == q + {c}", 1.6) for c in range(1, n))
        yield from ((f"k == {c}", 1.5) for c in range(n))
        yield from ((f"k == {c} - q", 1.7) for c in range(1, 2 * n - 2))
        yield from ((f"k < {c}", 1.5) for c in range(2, n))
        return
    if _in_common(key, query) >= 2:
        yield "k == q", 2.0
        yield "k != q", 2.4
    if _is_place(key) or _is_place(query):
        if key.is_numbers and query.is_numbers and not _are_fractions(key, query):
            yield from ((f"k == q {sign} {c}", 2.3) for sign in "+-" for c in (1, 2))
            yield from ((text, 2.3) for text in ("k < q", "k > q"))
        return
    if key.is_ordered and query.is_ordered:
        both = all(one.is_numbers for one in (key, query))
        start = "" if both else "isinstance(k, (int, float)) and isinstance(q, (int, float)) and "
        yield from ((f"{start}k {sign} q", 2.2) for sign in ("<", ">", "<=", ">="))
        if not query.is_numbers:
            yield "isinstance(k, (int, float)) and (not isinstance(q, (int, float)) or k > q)", 2.5
    if key is query and len(key.own_values) <= MOST_CONSTANTS:
        yield from ((text, 2.1) for text in _constants(key))


def _constants(one: Known) -> Iterator[str]:
    """Return the predicates of a key alone."""
    yield from (f"k == {value!r}" for value in one.own_values)
    if one.is_numbers:
        numbers = sorted(value for value in one.own_values if is_number(value))
        yield from (f"k {sign} {number!r}" for number in numbers[1:-1] for sign in ("<=", ">"))


def _are_fractions(*variables: Known) -> bool:
    return any(value != int(value) for one in variables for value in one.own_values if is_number(value))


def _in_common(key: Known, query: Known) -> int:
    return len(set(map(repr, key.own_values)) & set(map(repr, query.own_values)))


def _matrix(inputs: Inputs, key: Known, query: Known, predicate: str) -> Matrix | None:
    """Return the visible edges that a predicate selects; None if it cannot be asked of the values."""
    function: Callable[..., object] = eval(f"lambda k, q: {predicate}")
    try:
        table = _table(key.values, query.values, function)
    except TypeError:
        return None
    matrix = table[key.codes[:, None, :], query.codes[:, :, None]] & inputs.task.visible
    return matrix if matrix.any() else None


def _table(keys: Iterable[object], queries: Sequence[object], function: Callable[..., object]) -> np.ndarray:
    return np.array([[not (k is None or q is None) and bool(function(k, q)) for q in queries] for k in keys])


def _of_kinds(inputs: Inputs, known: Sequence[Known], observed: Observed) -> Iterator[_Base]:
    """The predicate that lists the pairs of kinds, of the first kinds that variables tell."""
    for of in observed.kinds:
        key = told_by(inputs, known, of.crossed, of.keys, f"{observed.name}_keys")
        query = told_by(inputs, known, of.crossed, of.queries, f"{observed.name}_queries")
        if key is not None and query is not None:
            listed = [(k, q) for q, k in np.argwhere(of.selected).tolist()]
            yield from _listed(inputs, key, query, listed)
            return


def _tables(inputs: Inputs, known: Sequence[Known], observed: Observed) -> Iterator[_Base]:
    """Predicates that list the pairs of values of which keys are selected.

    Keys and queries are variables, or two of them together: what an MLP makes of two is a function of both.
    """
    selected, rows = observed.selected, observed.rows
    known = [one for one in known if not _are_fractions(one)]
    for key, query in product([*known, *together(inputs, known)], repeat=2):
        n_keys, n_queries = len(key.values), len(query.values)
        if n_keys * n_queries > MOST_PAIRS:
            continue
        pairs = key.codes[:, None, :] * n_queries + query.codes[:, :, None]
        is_read = np.broadcast_to(inputs.task.visible, pairs.shape).copy()
        is_read &= key.defined()[:, None, :] & query.defined()[:, :, None]
        is_read[:, np.setdiff1d(np.arange(inputs.task.n_ctx), rows)] = False
        total = np.bincount(pairs[is_read], selected[is_read], n_keys * n_queries)
        count = np.bincount(pairs[is_read], minlength=n_keys * n_queries)
        told = np.maximum(total, count - total).sum() / max(count.sum(), 1)
        if (key not in known or query not in known) and told < TOLD:
            continue
        if observed.own is not None:
            at_own = _with_own(inputs, key, query, rows, observed.own)
            total, count = (np.where(count > 0, one, own) for one, own in zip((total, count), at_own, strict=True))
        chosen = (total > PASSES * count).reshape(n_keys, n_queries)
        met = count.reshape(n_keys, n_queries) > 0
        if not chosen.any() or chosen[met].all():
            continue
        chosen[UNDEFINED] = chosen[:, UNDEFINED] = False
        yield from _listed(inputs, key, query, [(key.values[k], query.values[q]) for k, q in np.argwhere(chosen)])


def _with_own(
    inputs: Inputs, key: Known, query: Known, rows: Sequence[int], own: OwnEdges
) -> tuple[Counts, Counts]:
    """For each pair of values at one position, how often it is selected and how often it is met."""
    seen = [row for row in rows if inputs.task.visible[row, row]]
    keys, queries = key.codes[:, seen], query.codes[own.source][:, seen]
    asked = (keys != UNDEFINED) & (queries != UNDEFINED)
    pairs, n_pairs = (keys * len(query.values) + queries)[asked], len(key.values) * len(query.values)
    return np.bincount(pairs, own.selected[:, seen][asked], n_pairs), np.bincount(pairs, minlength=n_pairs)


def _listed(inputs: Inputs, key: Known, query: Known, pairs: Sequence[tuple[Value, Value]]) -> Iterator[_Base]:
    """The predicate that lists pairs of values."""
    predicate = f"(k, q) in {pairs!r}"
    if (matrix := _matrix(inputs, key, query, predicate)) is not None:
        longer = 0.2 * (key.cost + query.cost - 2)
        yield _Base(key, query, predicate, matrix, 3 + 0.1 * min(len(pairs), 30) + longer)


def together(inputs: Inputs, known: Sequence[Known]) -> list[Known]:
    """Every two variables that are not too many values together, as one variable: the pair of their values."""
    found = []
    for one, other in combinations(known, 2):
        if len(one.values) * len(other.values) <= MOST_TOGETHER:
            name = "_and_".join(variable.name.removeprefix("rasp.") for variable in (one, other))
            text = f"rasp.SequenceMap(lambda x, y: (x, y), {one.name}, {other.name})"
            found.append(inputs.define(name, text, (one, other), 1.5))
    return [one for one in found if one is not None]
