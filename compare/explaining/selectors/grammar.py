"""The selectors that a head may have: over variables that are known, the short ones first.

Every selector is a predicate of a key's and a query's value, perhaps with a further condition on keys; or the best
of the keys that it selects. What looks alike on the sample is one candidate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TypeVar

import numpy as np
from jaxtyping import Bool

from rasplens.compare.explaining.known import Inputs, Known
from rasplens.compare.explaining.selectors.attended import Matrix
from rasplens.compare.explaining.selectors.predicates import (
    MOST_CONSTANTS,
    Predicate,
    are_fractions,
    is_place,
    predicates,
)
from rasplens.compare.explaining.selectors.tables import Observed, ToldKinds, of_kinds, of_values
from rasplens.compile.rasp import Value

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


One = TypeVar("One", Predicate, Candidate, "Select")


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

    base: Predicate
    within: _Window | None


def selects(inputs: Inputs, known: Sequence[Known], observed: Observed, told: ToldKinds | None) -> list[Select]:
    """The selectors of all keys that a predicate holds for, without those that look alike on the rows that matter.

    Args:
        inputs: The sample.
        known: The variables.
        observed: Where the heads look that are explained.
        told: The kinds that they tell apart; None where these are not known.
    """
    bases = [base for key, query in product(known, known) for base in predicates(inputs, key, query)]
    bases += of_values(inputs, known, observed)
    if told is not None:
        bases += of_kinds(inputs, told)
    windows = [*_windows(inputs, known)]
    each = (one for base in unlike(bases, observed.rows) for one in _selects(base, windows))
    return unlike([*each], observed.rows)


def best_of(known: Sequence[Known], one: Select) -> Iterator[Candidate]:
    """The selectors of the best of the keys that another one selects, by each score; none if there is only one."""
    if (one.matrix.sum(axis=2) > 1).mean() <= SEVERAL or not (one.within is None or is_place(one.within.of)):
        return
    for score, said in _scores(known):
        yield _best(one, score, said)


def unlike(found: Sequence[One], rows: Sequence[int]) -> list[One]:
    """The cheapest of those that select the same at some queries, in the order of their cost.

    Selectors of different computed variables are kept apart: values that go together on inputs may not do so where
    the sample is crossed.
    """
    kept: dict[tuple[bytes, frozenset[str]], One] = {}
    for one in sorted(found, key=lambda one: one.cost):
        made = frozenset(read.name for read in one.reads if read.needs)
        kept.setdefault((np.packbits(one.matrix[:, rows]).tobytes(), made), one)
    return list(kept.values())


def _selects(base: Predicate, windows: Sequence[_Window]) -> Iterator[Select]:
    """The predicate alone, and with each window."""
    text = f"rasp.Select({base.key.name}, {base.query.name}, lambda k, q: {base.text})"
    reads = base.key, base.query
    yield Select(text, reads, base.matrix, base.cost, base, None)
    if is_place(base.key) and is_place(base.query):
        return
    for window in windows:
        there = f"rasp.Select({window.of.name}, {window.of.name}, lambda k, q: {window.said('k', 'q')})"
        both = base.matrix & window.matrix
        yield Select(
            f"{text} & {there}", tuple(dict.fromkeys((*reads, window.of))), both, base.cost + 0.6, base, window
        )


def _best(of: Select, score: Known, said: str) -> Candidate:
    """The selected keys with the highest score."""
    base, window = of.base, of.within
    numbers = -score.numbers() if said.startswith("-") else score.numbers()
    scores = np.where(of.matrix, np.nan_to_num(numbers, nan=-np.inf)[:, None, :], -np.inf)
    highest = scores.max(axis=2, keepdims=True)
    best = of.matrix & (scores == highest) & np.isfinite(highest)
    keys, queries, predicate = base.key.name, base.query.name, base.text
    if window is not None:  # a value and its place, compared by both
        keys, queries = (f"rasp.SequenceMap(lambda x, i: (x, i), {one}, rasp.indices)" for one in (keys, queries))
        predicate = f"(lambda k, q: {predicate})(k[0], q[0]) and {window.said('k[1]', 'q[1]')}"
    text = f"rasp.SelectBest({keys}, {queries}, lambda k, q: {predicate}, {said})"
    return Candidate(text, tuple(dict.fromkeys((base.key, base.query, score))), best, base.cost + 0.8)


def _windows(inputs: Inputs, known: Sequence[Known]) -> Iterator[_Window]:
    n, place = inputs.task.n_ctx, inputs.primitives()[1]
    k, q = np.arange(n)[None, None, :], np.arange(n)[None, :, None]
    first = inputs.task.loss_positions[0]
    yield _Window(place, lambda k, q: f"{k} < {q}", k < q)
    yield _Window(place, lambda k, q: f"{k} != {q}", k != q)
    for most in (first, first - 1):
        if most > 1:
            yield _Window(place, partial(_before, most), np.broadcast_to(k < most, (1, n, n)))
    for one in known:
        if one.needs and len(one.own_values) <= MOST_CONSTANTS and not are_fractions(one):
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
        if is_place(one) or (one.is_numbers and one.is_ordered):
            yield one, one.name
            yield one, f"-{one.name}"
        elif one.is_ordered:
            for sign in ("", "-"):
                yield one, f"{sign}rasp.Map(lambda x: x if isinstance(x, (int, float)) else None, {one.name})"
