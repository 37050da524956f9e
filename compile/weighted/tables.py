"""Real functions of a key's and a query's value with few numbers, each as a table over all pairs of values.

A *curve* is a function of one value. Numbers are named: two curves that name the same ones share them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import ModuleType

import numpy as np
from jaxtyping import Float

from rasplens.compile.rasp.language import Value
from rasplens.compile.rasp.values import is_number, value_key
from rasplens.errors import RaspLensError
from rasplens.model.forward import Array

Numbers = Mapping[str, Array]
"""By name, the numbers of a program."""

HIDDEN = -1e9
"""The score of what is not selected: finite, so that mixtures of values have one too."""

Initial = Mapping[str, Float[np.ndarray, "..."]]


@dataclass(frozen=True, eq=False)
class Parametrised:
    """A function with numbers of its own, and those of the functions that it is made of."""

    def own(self) -> Initial:
        """Its numbers by name, as they are at first."""
        return {}

    def initial(self) -> Initial:
        """All of its numbers by name, as they are at first.

        Raises:
            RaspLensError: If two different functions give one name different numbers.
        """
        arguments = (getattr(self, one.name) for one in fields(self))
        parts = (part.initial() for part in arguments if isinstance(part, Parametrised))
        return joined((self.own(), *parts))


def joined(parts: Iterable[Initial]) -> Initial:
    """The numbers of several functions by name.

    Raises:
        RaspLensError: If two of them give one name different numbers.
    """
    found: dict[str, np.ndarray] = {}
    for name, given in (pair for part in parts for pair in part.items()):
        if not np.array_equal(found.setdefault(name, given), given):
            raise RaspLensError(f"Two functions give {name!r} different numbers. Give them two names.")
    return found


@dataclass(frozen=True, eq=False)
class Curve(Parametrised):
    """A real function of one value."""

    def at(self, values: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return its number for each of some values: `[value]`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Constant(Curve):
    """One number for all values.

    Attributes:
        name: Of the number.
        start: The number at first.
    """

    name: str
    start: float = 0.0

    def own(self) -> Initial:
        """Its number."""
        return {self.name: np.array([self.start], dtype=np.float32)}

    def at(self, values: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the number for each value."""
        return xp.broadcast_to(numbers[self.name], (len(values),))


@dataclass(frozen=True, eq=False)
class Each(Curve):
    """A number for each of some values, and 0 for all others.

    Attributes:
        name: Of the numbers.
        values: The values that have one.
        start: Their numbers at first; 0 if none are given.
    """

    name: str
    values: tuple[Value, ...]
    start: tuple[float, ...] = ()

    def own(self) -> Initial:
        """Its numbers, one for each value."""
        start = self.start or (0.0,) * len(self.values)
        return {self.name: np.array(start, dtype=np.float32)}

    def at(self, values: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the number for each value."""
        place = {value_key(value): i for i, value in enumerate(self.values)}
        places = [place.get(value_key(value), len(self.values)) for value in values]
        return xp.concatenate([numbers[self.name], xp.zeros(1)])[np.array(places)]


@dataclass(frozen=True, eq=False)
class Polynomial(Curve):
    """A polynomial of another curve.

    Attributes:
        name: Of its coefficients.
        of: The other curve.
        start: The coefficients at first, the constant first.
    """

    name: str
    of: Curve
    start: tuple[float, ...]

    def own(self) -> Initial:
        """Its coefficients."""
        return {self.name: np.array(self.start, dtype=np.float32)}

    def at(self, values: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the polynomial at each value, by Horner's rule."""
        at = self.of.at(values, numbers, xp)
        found = xp.zeros_like(at)
        for coefficient in range(len(self.start) - 1, -1, -1):
            found = found * at + numbers[self.name][coefficient]
        return found


@dataclass(frozen=True, eq=False)
class Of(Curve):
    """A curve of a function of the value.

    Attributes:
        function: From a value to another one; never called with None.
        curve: The curve.
    """

    function: Callable[[Value], Value]
    curve: Curve

    def at(self, values: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the curve at the function of each value."""
        read = [None if value is None else self.function(value) for value in values]
        return self.curve.at(read, numbers, xp)


@dataclass(frozen=True, eq=False)
class Rest(Curve):
    """One minus a curve that is a share.

    Attributes:
        of: That curve.
    """

    of: Curve

    def at(self, values: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return what is left at each value."""
        return 1.0 - self.of.at(values, numbers, xp)


@dataclass(frozen=True, eq=False)
class Number(Curve):
    """The value itself, shifted and scaled; 0 for a value that is no number.

    Attributes:
        scale: What it is divided by.
        centre: What is subtracted first.
    """

    scale: float = 1.0
    centre: float = 0.0

    def at(self, values: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return each value as a number."""
        read = [(float(value) - self.centre) / self.scale if is_number(value) else 0.0 for value in values]
        return xp.asarray(np.array(read, dtype=np.float32))


@dataclass(frozen=True, eq=False)
class Table(Parametrised):
    """A real function of a key's and a query's value; of votes, of who votes and what for."""

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return its number for each pair of some keys and queries: `[key, query]`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Keys(Table):
    """A curve of the key's value."""

    curve: Curve

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the curve at each key, whatever the query."""
        return xp.broadcast_to(self.curve.at(keys, numbers, xp)[:, None], (len(keys), len(queries)))


@dataclass(frozen=True, eq=False)
class Queries(Table):
    """A curve of the query's value."""

    curve: Curve

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the curve at each query, whatever the key."""
        return xp.broadcast_to(self.curve.at(queries, numbers, xp)[None, :], (len(keys), len(queries)))


@dataclass(frozen=True, eq=False)
class Times(Table):
    """The product of two tables."""

    one: Table
    other: Table

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the product for each pair."""
        return self.one.over(keys, queries, numbers, xp) * self.other.over(keys, queries, numbers, xp)


@dataclass(frozen=True, eq=False)
class When(Table):
    """A table where a predicate of (key, query) holds, and 0 elsewhere.

    Attributes:
        predicate: A function of (key, query); never called with None.
        table: The table.
    """

    predicate: Callable[[Value, Value], bool]
    table: Table

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the table where the predicate holds."""
        return xp.where(_holds(self.predicate, keys, queries), self.table.over(keys, queries, numbers, xp), 0.0)


@dataclass(frozen=True, eq=False)
class Only(Table):
    """0 where a predicate of (key, query) holds, and `HIDDEN` elsewhere: what `Select` selects.

    Attributes:
        predicate: A function of (key, query); never called with None.
    """

    predicate: Callable[[Value, Value], bool]

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return 0 where the predicate holds."""
        return xp.where(_holds(self.predicate, keys, queries), 0.0, HIDDEN)


@dataclass(frozen=True, eq=False)
class Difference(Table):
    """A function of key minus query, linear between knots; 0 where one of the two is no number.

    Attributes:
        name: Of the numbers at the knots.
        knots: Differences, the lowest first; beyond the first and the last the function is constant.
        start: The numbers at first; 0 if none are given.
    """

    name: str
    knots: tuple[float, ...]
    start: tuple[float, ...] = ()

    def own(self) -> Initial:
        """Its numbers, one for each knot."""
        return {self.name: np.array(self.start or (0.0,) * len(self.knots), dtype=np.float32)}

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the function of each pair's difference."""
        known = np.array([[is_number(key) and is_number(query) for query in queries] for key in keys])
        key, query = (np.array([float(one) if is_number(one) else 0.0 for one in of]) for of in (keys, queries))
        found = xp.interp(key[:, None] - query[None, :], np.array(self.knots), numbers[self.name])
        return xp.where(known, found, 0.0)


@dataclass(frozen=True, eq=False)
class Pairs(Table):
    """A number for each pair of some keys and queries, and 0 for all others.

    Attributes:
        name: Of the numbers.
        keys: The keys that have some.
        queries: The queries that have some.
        start: The numbers at first, `[key][query]`; 0 if none are given.
    """

    name: str
    keys: tuple[Value, ...]
    queries: tuple[Value, ...]
    start: tuple[tuple[float, ...], ...] = ()

    def own(self) -> Initial:
        """Its numbers."""
        shape = (len(self.keys), len(self.queries))
        start = np.array(self.start, dtype=np.float32) if self.start else np.zeros(shape, dtype=np.float32)
        return {self.name: start.reshape(shape)}

    def over(self, keys: Sequence[Value], queries: Sequence[Value], numbers: Numbers, xp: ModuleType) -> Array:
        """Return the number of each pair."""
        padded = xp.pad(numbers[self.name], ((0, 1), (0, 1)))
        return padded[np.ix_(_places(self.keys, keys), _places(self.queries, queries))]


def _places(known: Sequence[Value], values: Sequence[Value]) -> list[int]:
    place = {value_key(value): i for i, value in enumerate(known)}
    return [place.get(value_key(value), len(known)) for value in values]


def _holds(
    predicate: Callable[[Value, Value], bool], keys: Sequence[Value], queries: Sequence[Value]
) -> np.ndarray:
    def holds(key: Value, query: Value) -> bool:
        try:
            return key is not None and query is not None and bool(predicate(key, query))
        except Exception as error:
            raise RaspLensError(
                f"A predicate raised {type(error).__name__} on key {key!r} and query {query!r} ({error}). "
                "It is asked of every pair of values; let it be False where it makes no sense."
            ) from error

    return np.array([[holds(k, q) for q in queries] for k in keys]).reshape(len(keys), len(queries))
