"""Predicates of a key's and a query's value: what selectors are made of, the short ones first.

A predicate is called once for each pair of values. So its matrix on the sample is a table, looked up.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rasplens.compare.explaining.known import Inputs, Known
from rasplens.compare.explaining.selectors.attended import Matrix
from rasplens.compile.rasp.values import is_number

MOST_CONSTANTS = 12
"""Of a variable with more values, none is a constant of a predicate."""


@dataclass(frozen=True, eq=False)
class Predicate:
    """A predicate of one key and one query variable.

    Attributes:
        key: The key's.
        query: The query's.
        text: As Python, of `k` and `q`.
        matrix: The visible edges that it holds for, on the sample.
        cost: How long it is, in steps.
    """

    key: Known
    query: Known
    text: str
    matrix: Matrix
    cost: float

    @property
    def reads(self) -> tuple[Known, Known]:
        """The key's variable and the query's."""
        return self.key, self.query


def predicates(inputs: Inputs, key: Known, query: Known) -> Iterator[Predicate]:
    """The predicates of two variables; of fractions, only with themselves."""
    if key is not query and are_fractions(key, query):
        return
    for text, cost in _texts(inputs, key, query):
        yield from predicate(inputs, key, query, text, cost)


def predicate(inputs: Inputs, key: Known, query: Known, text: str, cost: float) -> Iterator[Predicate]:
    """The predicate of a text; none if it cannot be asked of the values, or holds for no visible edge."""
    if (matrix := _matrix(inputs, key, query, text)) is not None:
        yield Predicate(key, query, text, matrix, cost + 0.2 * (key.cost + query.cost - 2))


def _texts(inputs: Inputs, key: Known, query: Known) -> Iterator[tuple[str, float]]:
    n = inputs.task.n_ctx
    if is_place(key) and is_place(query):
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
    if is_place(key) or is_place(query):
        if key.is_numbers and query.is_numbers and not are_fractions(key, query):
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


def are_fractions(*variables: Known) -> bool:
    """Whether some of their numbers are no integers: shares and means."""
    return any(value != int(value) for one in variables for value in one.own_values if is_number(value))


def _in_common(key: Known, query: Known) -> int:
    return len(set(map(repr, key.own_values)) & set(map(repr, query.own_values)))


def _matrix(inputs: Inputs, key: Known, query: Known, text: str) -> Matrix | None:
    """Return the visible edges that a predicate selects; None if it cannot be asked of the values."""
    function: Callable[..., object] = eval(f"lambda k, q: {text}")
    try:
        table = _table(key.values, query.values, function)
    except TypeError:
        return None
    matrix = table[key.codes[:, None, :], query.codes[:, :, None]] & inputs.task.visible
    return matrix if matrix.any() else None


def _table(keys: Iterable[object], queries: Sequence[object], function: Callable[..., object]) -> np.ndarray:
    return np.array([[not (k is None or q is None) and bool(function(k, q)) for q in queries] for k in keys])


def is_place(one: Known) -> bool:
    """Whether it is the position."""
    return one.name == "rasp.indices"
