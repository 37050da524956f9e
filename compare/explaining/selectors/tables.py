"""Tables of the values of which keys are selected, read off where heads look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.explaining.known import Inputs, Known
from rasplens.compare.explaining.selectors.kinds import Kinds, Told, told_by
from rasplens.compare.explaining.selectors.predicates import Predicate, are_fractions, predicate
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED

MOST_PAIRS = 2_000
"""Of variables with more pairs of values, attention gives no table."""

MOST_TOGETHER = 60
"""Two variables with at most so many values together may be a key or a query in a table."""

TOLD = 0.97
"""Share of the keys of which a table of pairs of variables must tell whether they are selected."""

PASSES = 0.5
"""Share of its keys that must be selected for a pair of values to stand in a table."""

Counts = Float[np.ndarray, " pair"] | Int[np.ndarray, " pair"]


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


@dataclass(frozen=True, eq=False)
class ToldKinds:
    """Kinds of keys and queries, and what tells them.

    Attributes:
        key: Of the keys.
        query: Of the queries.
        selected: Which kinds of keys each kind of queries selects.
    """

    key: Told
    query: Told
    selected: Bool[np.ndarray, "query key"]


def told_kinds(inputs: Inputs, known: Sequence[Known], observed: Observed) -> ToldKinds | None:
    """The first kinds of keys and queries that variables tell."""
    for of in observed.kinds:
        key = told_by(inputs, known, of.crossed, of.keys, f"{observed.name}_keys")
        query = told_by(inputs, known, of.crossed, of.queries, f"{observed.name}_queries")
        if key is not None and query is not None:
            return ToldKinds(key, query, of.selected)
    return None


def of_kinds(inputs: Inputs, told: ToldKinds) -> Iterator[Predicate]:
    """The predicate that lists the pairs of kinds."""
    listed = [(k, q) for q, k in np.argwhere(told.selected).tolist()]
    yield from _listed(inputs, told.key.known, told.query.known, listed)


def of_values(inputs: Inputs, known: Sequence[Known], observed: Observed) -> Iterator[Predicate]:
    """Predicates that list the pairs of values of which keys are selected.

    Keys and queries are variables, or two of them together: what an MLP makes of two is a function of both.
    """
    selected, rows = observed.selected, observed.rows
    known = [one for one in known if not are_fractions(one)]
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


def _listed(inputs: Inputs, key: Known, query: Known, pairs: Sequence[tuple[Value, Value]]) -> Iterator[Predicate]:
    """The predicate that lists pairs of values."""
    return predicate(inputs, key, query, f"(k, q) in {pairs!r}", 3 + 0.1 * min(len(pairs), 30))


def together(inputs: Inputs, known: Sequence[Known]) -> list[Known]:
    """Every two variables that are not too many values together, as one variable: the pair of their values."""
    found = []
    for one, other in combinations(known, 2):
        if len(one.values) * len(other.values) <= MOST_TOGETHER:
            name = "_and_".join(variable.name.removeprefix("rasp.") for variable in (one, other))
            text = f"rasp.SequenceMap(lambda x, y: (x, y), {one.name}, {other.name})"
            found.append(inputs.define(name, text, (one, other), 1.5))
    return [one for one in found if one is not None]
