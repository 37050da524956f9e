"""The steps of random programs, as plain data, with the expression and the values of each.

All s-ops take the values 0 to 2, and none is ever undefined.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from rasplens.compile.rasp import (
    Aggregate,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    SOp,
    Value,
    Where,
    indices,
    numerical,
    tokens,
)

N_VALUES = 3
"""Values of every s-op, tokens included."""

Values = Int[np.ndarray, "input pos"]


@dataclass(frozen=True)
class Step:
    """An s-op with values 0 to 2.

    Attributes:
        kind: One of `KINDS`, or `"tokens"` or `"places"`, which are positions modulo 3.
        reads: The steps that it reads.
        table: Its function or predicate of values, the first argument's running slowest, then perhaps a default.
    """

    kind: str
    reads: tuple["Step", ...] = ()
    table: tuple[int, ...] = ()


def ordered(step: Step) -> tuple[Step, ...]:
    """A step and all that it reads, each once and behind what it reads itself."""
    found: dict[Step, None] = {}
    for read in step.reads:
        if read not in found:
            found |= dict.fromkeys(ordered(read))
    return (*found, step)


def built(step: Step, name: str) -> SOp:
    """The expression of a step; steps that are equal are one expression.

    Args:
        step: The step.
        name: The name of the whole; steps on the way are called by their kind, and numbered.
    """
    found: dict[Step, SOp] = {}
    for number, one in enumerate(ordered(step)):
        if one.kind == "tokens":
            found[one] = tokens
        elif one.kind == "places":
            found[one] = Map(lambda i: i % N_VALUES, indices).named("places")
        else:
            made = KINDS[one.kind].build(one.table, [found[read] for read in one.reads])
            found[one] = made.named(f"{one.kind}_{number}")
    return found[step].named(name)


def values(step: Step, ids: Values) -> Values:
    """The values of a step on many inputs at once, by arithmetic that shares nothing with the interpreter."""
    found: dict[Step, np.ndarray] = {}
    for one in ordered(step):
        if one.kind == "tokens":
            found[one] = ids
        elif one.kind == "places":
            found[one] = np.broadcast_to(np.arange(ids.shape[1]) % N_VALUES, ids.shape)
        else:
            found[one] = KINDS[one.kind].evaluate(np.array(one.table), [found[read] for read in one.reads])
    return found[step]


class Kind(NamedTuple):
    """A kind of step.

    Attributes:
        n_reads: How many steps it reads.
        cells: For every cell of its table, how many values it can have.
        build: From a table and expressions, the expression.
        evaluate: From a table and values, the values.
    """

    n_reads: int
    cells: tuple[int, ...]
    build: Callable[[tuple[int, ...], list[SOp]], SOp]
    evaluate: Callable[[np.ndarray, list[np.ndarray]], np.ndarray]


def _function(table: tuple[int, ...]) -> Callable[..., Value]:
    """A function of one or two values."""
    return lambda *at: table[sum(value * N_VALUES**i for i, value in enumerate(reversed(at)))]


def _predicate(table: tuple[int, ...]) -> Callable[[Value, Value], bool]:
    return lambda key, query: bool(table[key * N_VALUES + query])


def _selected(table: np.ndarray, keys: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """`[input, query, key]`."""
    return table[keys[:, None, :] * N_VALUES + queries[:, :, None]].astype(bool)


def _build_latest(table: tuple[int, ...], reads: list[SOp]) -> SOp:
    keys, queries, content = reads
    return Aggregate(SelectBest(keys, queries, _predicate(table), indices), content, default=table[-1])


def _latest(table: np.ndarray, reads: list[np.ndarray]) -> np.ndarray:
    keys, queries, content = reads
    selected = _selected(table, keys, queries)
    n = keys.shape[1]
    last = np.where(selected, np.arange(n), -1).max(axis=2)
    return np.where(last >= 0, np.take_along_axis(content, np.maximum(last, 0), axis=1), table[-1])


def _build_width(table: tuple[int, ...], reads: list[SOp]) -> SOp:
    keys, queries = reads
    return Map(lambda n: n % N_VALUES, SelectorWidth(Select(keys, queries, _predicate(table))))


def _width(table: np.ndarray, reads: list[np.ndarray]) -> np.ndarray:
    return _selected(table, *reads).sum(axis=2) % N_VALUES


def _build_width_of_both(table: tuple[int, ...], reads: list[SOp]) -> SOp:
    first = Select(reads[0], reads[1], _predicate(table[:9]))
    second = Select(reads[2], reads[3], _predicate(table[9:18]))
    both = first & second if table[-1] else first | ~second
    return Map(lambda n: n % N_VALUES, SelectorWidth(both))


def _width_of_both(table: np.ndarray, reads: list[np.ndarray]) -> np.ndarray:
    first, second = _selected(table[:9], *reads[:2]), _selected(table[9:18], *reads[2:])
    return (first & second if table[-1] else first | ~second).sum(axis=2) % N_VALUES


def _build_share(table: tuple[int, ...], reads: list[SOp]) -> SOp:
    keys, queries, content = reads
    bits = numerical(Map(lambda value: value % 2, content))
    mean = numerical(Aggregate(Select(keys, queries, _predicate(table)), bits, default=0))
    return Map(lambda x: round(12 * x) % N_VALUES, mean)


def _share(table: np.ndarray, reads: list[np.ndarray]) -> np.ndarray:
    keys, queries, content = reads
    selected = _selected(table, keys, queries)
    total = (selected * (content % 2)[:, None, :]).sum(axis=2)
    share = total / np.maximum(selected.sum(axis=2), 1)
    return np.round(12 * share).astype(int) % N_VALUES


_ONE, _TWO, _PREDICATE = (N_VALUES,) * N_VALUES, (N_VALUES,) * N_VALUES**2, (2,) * N_VALUES**2

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "map": Kind(
            1, _ONE, lambda table, reads: Map(_function(table), *reads), lambda table, reads: table[reads[0]]
        ),
        "pair": Kind(
            2,
            _TWO,
            lambda table, reads: SequenceMap(_function(table), *reads),
            lambda table, reads: table[reads[0] * N_VALUES + reads[1]],
        ),
        "where": Kind(
            3,
            (),
            lambda table, reads: Where(*reads),
            lambda table, reads: np.where(reads[0] > 0, reads[1], reads[2]),
        ),
        "latest": Kind(3, (*_PREDICATE, N_VALUES), _build_latest, _latest),
        "width": Kind(2, _PREDICATE, _build_width, _width),
        "width_of_both": Kind(4, (*_PREDICATE, *_PREDICATE, 2), _build_width_of_both, _width_of_both),
        "share": Kind(3, _PREDICATE, _build_share, _share),
    }
)
"""The kinds of steps that read others."""
