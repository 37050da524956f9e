"""The language of weighted programs: RASP with real-valued scores, mixtures of values, and votes.

A hard selector is a score of 0 or minus infinity. `Weigh` is a real-valued selector, `Mix` the mixture of values
that one head of attention gathers by it, and `Vote` the value with the most votes. S-ops of RASP are point masses:
they can be keys, queries, what is mixed, and who votes.

Source: soft attention as in Vaswani et al. 2017, section 3.2.1, over the values of RASP (Weiss et al. 2021).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np
from jaxtyping import Float

from rasplens.compile.rasp.language import SOp, Value
from rasplens.compile.weighted.tables import Initial, Parametrised, Table, joined
from rasplens.errors import RaspLensError


@dataclass(frozen=True, eq=False)
class Expression:
    """A part of a weighted program. What its arguments must be is what the class says they are.

    Raises:
        TypeError: If an argument is something else.
    """


T = TypeVar("T", bound="Term[Any]")


@dataclass(frozen=True, eq=False)
class Term(Expression, Generic[T]):
    """A score or votes; `+` adds terms of one kind."""

    @property
    def terms(self) -> tuple[T, ...]:
        """The terms that it is the sum of: itself."""
        return cast(tuple[T, ...], (self,))

    def __add__(self, other: "Term[T]") -> "Sum[T]":
        return Sum((*self.terms, *other.terms)) if isinstance(other, Term) else NotImplemented


@dataclass(frozen=True, eq=False)
class Sum(Term[T]):
    """The sum of terms, all scores or all votes."""

    of: tuple[T, ...]

    def __post_init__(self) -> None:
        if len(set(map(type, self.of))) > 1:
            raise TypeError("Scores are added to scores, and votes to votes; got some of each.")

    @property
    def terms(self) -> tuple[T, ...]:
        """The terms that it is the sum of."""
        return self.of


@dataclass(frozen=True, eq=False)
class Weigh(Term["Weigh"]):
    """The score of a key's and a query's value; of mixtures, its mean.

    Attributes:
        keys: The keys.
        queries: The queries.
        score: From a key's and a query's value to a number.
    """

    keys: "SOp | Mix"
    queries: "SOp | Mix"
    score: Table

    def __post_init__(self) -> None:
        _check_variable(self.keys, "`keys` of Weigh")
        _check_variable(self.queries, "`queries` of Weigh")
        _check_table(self.score, "`score` of Weigh")


@dataclass(frozen=True, eq=False)
class Mix(Expression):
    """At each position the mixture of a variable's values at the keys, by the softmax of scores.

    Attributes:
        scores: The scores; what two mixtures by the same scores gather, one head gathers.
        sop: What is mixed.
    """

    scores: Term[Weigh]
    sop: "SOp | Mix"

    def __post_init__(self) -> None:
        if not isinstance(self.scores, Term) or not isinstance(self.scores.terms[0], Weigh):
            raise TypeError(f"`scores` of Mix must be Weigh(...), or a sum of them; got {self.scores!r}.")
        _check_variable(self.sop, "`sop` of Mix")


Variable = SOp | Mix
"""What can be a key, a query, mixed, or vote."""


@dataclass(frozen=True, eq=False)
class Votes(Term["Votes"]):
    """Votes for each candidate.

    Attributes:
        voters: A variable or a mixture; each value votes by its share.
        gain: From a value and a candidate to a number.
    """

    voters: Variable
    gain: Table

    def __post_init__(self) -> None:
        _check_variable(self.voters, "`voters` of Votes")
        _check_table(self.gain, "`gain` of Votes")


@dataclass(frozen=True, eq=False, repr=False)
class Vote(Expression):
    """A weighted program: at each position the candidate with the most votes.

    Attributes:
        votes: The votes.
        candidates: The values that can be voted for.
        numbers: By name, the numbers of its tables, where they are not as the tables have them at first.

    Raises:
        RaspLensError: If it has no number of such a name, or of such a shape.
    """

    votes: Term[Votes]
    candidates: tuple[Value, ...]
    numbers: Mapping[str, Float[np.ndarray, "..."]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.votes, Term) or not isinstance(self.votes.terms[0], Votes):
            raise TypeError(f"`votes` of Vote must be Votes(...), or a sum of them; got {self.votes!r}.")
        known = _initial(self)
        for name, given in self.numbers.items():
            if name not in known:
                raise RaspLensError(f"The program has no numbers {name!r}; it has {', '.join(known)}.")
            if np.shape(given) != known[name].shape:
                raise RaspLensError(f"{name!r} has the shape {known[name].shape}; got {np.shape(given)}.")

    def __repr__(self) -> str:
        return f"<Vote for one of {len(self.candidates)} candidates: {self.n_numbers} numbers>"

    @property
    def n_numbers(self) -> int:
        """How many numbers it has."""
        return sum(one.size for one in numbers_of(self).values())


def _check_variable(given: object, what: str) -> None:
    if not isinstance(given, Variable):
        raise TypeError(f"{what} must be an s-op or Mix(...); got {given!r}.")


def _check_table(given: object, what: str) -> None:
    if not isinstance(given, Table):
        raise TypeError(f"{what} must be a table, such as Keys(...) or When(...); got {given!r}.")


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


def _arguments(program: Expression) -> Iterator[object]:
    """The arguments of all parts of a program."""
    return (getattr(part, one.name) for part in parts_of(program) for one in fields(part))


def sops_of(program: Expression) -> list[SOp]:
    """The s-ops that a program reads, each once."""
    return list({id(one): one for one in _arguments(program) if isinstance(one, SOp)}.values())


def numbers_of(program: Vote) -> dict[str, Float[np.ndarray, "..."]]:
    """The numbers of a program by name."""
    return {**_initial(program), **program.numbers}


def with_numbers(program: Vote, numbers: Mapping[str, Float[np.ndarray, "..."]]) -> Vote:
    """A program with other numbers.

    Raises:
        RaspLensError: As `Vote` does.
    """
    return replace(program, numbers={**program.numbers, **numbers})


def _initial(program: Vote) -> Initial:
    return joined(one.initial() for one in _arguments(program) if isinstance(one, Parametrised))
