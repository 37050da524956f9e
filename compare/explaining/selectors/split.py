"""Two selectors in the place of one: both hold, or one of them does.

A head may tell keys apart by two variables because it sums the scores of two selectors, each of one variable. Then
the model has both variables, and none that says both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.explaining.known import Inputs, Known, table_text
from rasplens.compare.explaining.selectors.grammar import Candidate
from rasplens.compare.explaining.selectors.kinds import Told
from rasplens.compare.explaining.selectors.predicates import Predicate, are_fractions, predicate
from rasplens.compile.rasp import Value

SPLIT = 2
"""Keys or queries that so many variables tell are split; none that more tell."""

MOST_COUNTED = 20
"""So many pairs of values make a predicate longer; more are as long."""

Relation = Bool[np.ndarray, "query key"]
"""Which kinds of keys each kind of queries selects."""

Meet = Bool[np.ndarray, "of_query of_key"]
"""Which values of a query's variable meet which of a key's."""


def split(inputs: Inputs, name: str, key: Told, query: Told, selected: Relation) -> Iterator[Candidate]:
    """The selectors that two selectors of one key and one query variable each are together.

    Args:
        inputs: The sample, as programs see it.
        name: The heads', in programs.
        key: What tells the kinds of keys.
        query: What tells those of queries.
        selected: Which kinds of keys each kind of queries selects.
    """
    if max(len(key.read), len(query.read)) != SPLIT:
        return
    whole = selected[np.ix_([*query.kinds.values()], [*key.kinds.values()])]
    for first, second in _parts(_sides(key), _sides(query)):
        for sign, relation in (("&", whole), ("|", ~whole)):
            each = [_projected(relation, *part) for part in (first, second)]
            along = [one[np.ix_(q.places, k.places)] for one, (k, q) in zip(each, (first, second), strict=True)]
            if (along[0] & along[1] != relation).any():
                continue
            listed = each if sign == "&" else [~one for one in each]
            parts = [
                _predicate(inputs, f"{name}_{place}", k, q, one)
                for place, (one, (k, q)) in enumerate(zip(listed, (first, second), strict=True))
            ]
            found = [part for part in parts if part is not None]
            if len(found) == SPLIT:
                yield _together(sign, found)


@dataclass(frozen=True, eq=False)
class _Side:
    """A variable of keys or queries.

    Attributes:
        variable: The variable.
        values: Those that it takes.
        places: For each combination in `Told.kinds`, in order, the place of its own value in `values`.
    """

    variable: Known
    values: Sequence[Value]
    places: Int[np.ndarray, " met"]


def _sides(told: Told) -> list[_Side]:
    """The variables that tell a kind."""
    found = []
    for i, variable in enumerate(told.read):
        met = [values[i] for values in told.kinds]
        values = {repr(value): value for value in met}
        place = {text: at for at, text in enumerate(values)}
        found.append(_Side(variable, [*values.values()], np.array([place[repr(value)] for value in met])))
    return found


Part = tuple[_Side, _Side]


def _parts(keys: Sequence[_Side], queries: Sequence[_Side]) -> Iterator[tuple[Part, Part]]:
    """The ways to pair key variables with query variables twice so that every variable is used."""
    every = {*keys, *queries}
    pairs = list(product(keys, queries))
    for i, first in enumerate(pairs):
        for second in pairs[i + 1 :]:
            if {*first, *second} == every:
                yield first, second


def _projected(relation: Relation, key: _Side, query: _Side) -> Meet:
    """Which values of two variables meet in a relation, whatever the others are."""
    found = np.zeros((len(query.values), len(key.values)), dtype=bool)
    np.logical_or.at(found, np.ix_(query.places, key.places), relation)
    return found


def _predicate(inputs: Inputs, name: str, key: _Side, query: _Side, relation: Meet) -> Predicate | None:
    """The predicate that lists which values meet; those that meet the same are one."""
    keys = _grouped(inputs, f"{name}_keys", key, relation.T)
    queries = _grouped(inputs, f"{name}_queries", query, relation)
    if keys is None or queries is None:
        return None
    pairs = [(k, q) for (q, row), (k, column) in product(queries[1], keys[1]) if relation[row, column]]
    cost = 1 + 0.05 * min(len(pairs), MOST_COUNTED)
    return next(predicate(inputs, keys[0], queries[0], f"(k, q) in {pairs!r}", cost), None)


def _grouped(
    inputs: Inputs, name: str, side: _Side, rows: Bool[np.ndarray, "value other"]
) -> tuple[Known, list[tuple[Value, int]]] | None:
    """A variable that merges values with equal rows; and its values, each with the place of such a row."""
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    if len(first) == len(side.values) and not are_fractions(side.variable):
        return side.variable, [(value, place) for place, value in enumerate(side.values)]
    common = int(np.bincount(group).argmax())
    entries: dict[tuple[object, ...], object] = {
        (value,): int(one) for value, one in zip(side.values, group, strict=True) if one != common
    }
    known = inputs.define(
        name, table_text(entries, common, [side.variable]), [side.variable], 1 + 0.02 * len(entries)
    )
    return None if known is None else (known, [(one, int(place)) for one, place in enumerate(first)])


def _together(sign: str, parts: Sequence[Predicate]) -> Candidate:
    texts = [f"rasp.Select({one.key.name}, {one.query.name}, lambda k, q: {one.text})" for one in parts]
    reads = tuple(dict.fromkeys(variable for one in parts for variable in (one.key, one.query)))
    matrix = parts[0].matrix & parts[1].matrix if sign == "&" else parts[0].matrix | parts[1].matrix
    return Candidate(f" {sign} ".join(texts), reads, matrix, sum(one.cost for one in parts))
