"""The language of weighted programs: RASP with real-valued scores, mixtures of values, and votes.

A hard selector is a score of 0 or minus infinity. `Weigh` is a real-valued selector, `Mix` the mixture of values
that one head of attention gathers by it, and `Vote` the value with the most votes. S-ops of RASP are point masses:
they can be keys, queries, what is mixed, and who votes.

Source: soft attention as in Vaswani et al. 2017, section 3.2.1, over the values of RASP (Weiss et al. 2021).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np
from jaxtyping import Float

from rasplens.compile.rasp.language import SOp, Value
from rasplens.compile.weighted.tables import Parametrised, Table
from rasplens.errors import RaspLensError


@dataclass(frozen=True, eq=False)
class Expression:
    """A part of a weighted program."""


@dataclass(frozen=True, eq=False)
class Scores(Expression):
    """A number for each query and key; `+` adds them."""

    def __add__(self, other: "Scores") -> "Scores":
        return Scored((*_parts(self), *_parts(other)))


@dataclass(frozen=True, eq=False)
class Weigh(Scores):
    """The score of a key's and a query's value; of mixtures, its mean.

    Attributes:
        keys: The keys.
        queries: The queries.
        score: From a key's and a query's value to a number.
    """

    keys: "SOp | Mix"
    queries: "SOp | Mix"
    score: Table


@dataclass(frozen=True, eq=False)
class Scored(Scores):
    """The sum of scores."""

    parts: tuple[Weigh, ...]


@dataclass(frozen=True, eq=False)
class Mix(Expression):
    """At each position the mixture of a variable's values at the keys, by the softmax of scores.

    Attributes:
        scores: The scores; what two mixtures by the same scores gather, one head gathers.
        sop: What is mixed.
    """

    scores: Scores
    sop: "SOp | Mix"


Variable = SOp | Mix
"""What can be a key, a query, mixed, or vote."""


@dataclass(frozen=True, eq=False)
class Votes(Expression):
    """Votes for each candidate; `+` adds them.

    Attributes:
        voters: A variable or a mixture; each value votes by its share.
        gain: From a value and a candidate to a number.
    """

    voters: "SOp | Mix"
    gain: Table

    def __add__(self, other: "Votes | Counted") -> "Counted":
        return Counted((self, *(other.parts if isinstance(other, Counted) else (other,))))


@dataclass(frozen=True, eq=False)
class Counted(Expression):
    """The sum of votes."""

    parts: tuple[Votes, ...]

    def __add__(self, other: "Votes | Counted") -> "Counted":
        return Counted((*self.parts, *(other.parts if isinstance(other, Counted) else (other,))))


@dataclass(frozen=True, eq=False)
class Vote(Expression):
    """A weighted program: at each position the candidate with the most votes.

    Attributes:
        votes: The votes.
        candidates: The values that can be voted for.
        numbers: By name, the numbers of its tables, where they are not as the tables have them at first.

    Raises:
        RaspLensError: If it has no number of such a name, or of such a shape.
    """

    votes: Votes | Counted
    candidates: tuple[Value, ...]
    numbers: Mapping[str, Float[np.ndarray, "..."]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = _initial(self)
        for name, given in self.numbers.items():
            if name not in known:
                raise RaspLensError(f"The program has no numbers {name!r}; it has {', '.join(known)}.")
            if np.shape(given) != known[name].shape:
                raise RaspLensError(f"{name!r} has the shape {known[name].shape}; got {np.shape(given)}.")

    @property
    def n_numbers(self) -> int:
        """How many numbers it has."""
        return sum(one.size for one in numbers_of(self).values())


def _parts(scores: Scores) -> tuple[Weigh, ...]:
    if isinstance(scores, Scored):
        return scores.parts
    assert isinstance(scores, Weigh)
    return (scores,)


def summands(scores: Scores) -> tuple[Weigh, ...]:
    """The scores that a score is the sum of."""
    return _parts(scores)


def parts_of(program: Expression) -> Iterator[Expression]:
    """Every part of a program once, each after what it reads."""
    seen: set[int] = set()

    def walk(one: object) -> Iterator[Expression]:
        for part in one if isinstance(one, tuple) else (one,):
            if isinstance(part, Expression) and id(part) not in seen:
                seen.add(id(part))
                for argument in fields(part):
                    yield from walk(getattr(part, argument.name))
                yield part

    yield from walk(program)


def sops_of(program: Expression) -> list[SOp]:
    """The s-ops that a program reads, each once."""
    arguments = (getattr(part, one.name) for part in parts_of(program) for one in fields(part))
    return list({id(one): one for one in arguments if isinstance(one, SOp)}.values())


def numbers_of(program: Vote) -> dict[str, Float[np.ndarray, "..."]]:
    """The numbers of a program by name."""
    return {**_initial(program), **program.numbers}


def with_numbers(program: Vote, numbers: Mapping[str, Float[np.ndarray, "..."]]) -> Vote:
    """A program with other numbers.

    Raises:
        RaspLensError: As `Vote` does.
    """
    return replace(program, numbers={**program.numbers, **numbers})


def _initial(program: Vote) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for part in parts_of(program):
        for table in (getattr(part, one.name) for one in fields(part)):
            for name, given in table.initial().items() if isinstance(table, Parametrised) else ():
                if not np.array_equal(found.setdefault(name, given), given):
                    raise RaspLensError(f"Two tables give {name!r} different numbers. Give them two names.")
    return found
