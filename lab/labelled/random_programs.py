"""Random programs, each with another one that answers nearly as it does: pairs that nobody thought of.

A program is drawn as plain data, a `Step` that reads other steps, so that it can be changed: in one cell of one
table, where that changes the answers on few inputs; else in what one step reads; else by an exception for certain
tokens. How programs are drawn follows `tests/compile/test_random_programs.py`, which proves that such programs
compile to what they mean.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from lab.labelled.circuits import Circuit
from lab.labelled.random_steps import KINDS, N_VALUES, Step, built, ordered, values
from rasplens.compile.rasp import SOp
from rasplens.model import random_streams
from rasplens.tasks import Task, task_from_program

LENGTH = 5
"""Tokens of an input."""

N_PROGRAMS = 200
"""How many programs the set has."""

STEPS = (2, 6)
"""The fewest steps of a program, and one more than the most."""

NEARLY = 0.05
"""Two programs answer nearly alike if some answer differs on a smaller share of the inputs than this."""

MOST_OF_ONE = 0.9
"""A program of whose answers a larger share than this is the same is drawn again."""

FAMILY = "a random program, changed a little"

ALL_INPUTS = np.stack(np.unravel_index(np.arange(N_VALUES**LENGTH), [N_VALUES] * LENGTH), axis=1)
"""Every input of the tasks."""


@dataclass(frozen=True)
class RandomProgram:
    """A random program, and one that answers nearly as it does.

    Attributes:
        number: Which one it is.
        step: The program.
        near: A program that differs a little: in its answers on some of the inputs, on fewer than `NEARLY`.
        change: How it differs, of `CHANGES`.
        apart: The share of all inputs on which some answer of that one differs.
    """

    number: int
    step: Step
    near: Step
    change: str
    apart: float

    @property
    def name(self) -> str:
        """Its name."""
        return f"random_{self.number}"

    @property
    def program(self) -> SOp:
        """The program as an expression."""
        return built(self.step, self.name)

    def task(self) -> Task:
        """The task of computing it."""
        return task_from_program(self.program, range(N_VALUES), LENGTH)

    def circuit(self) -> Circuit:
        """The program with the one that is near."""
        return Circuit(
            self.name,
            self.task,
            lambda: self.program,
            lambda: built(self.near, f"{self.name}_near"),
            FAMILY,
            1 - self.apart,
        )


def random_programs(n: int = N_PROGRAMS, seed: int = 0) -> Iterator[RandomProgram]:
    """Random programs; the first ones are the same however many are asked for."""
    return (random_program(number, seed) for number in range(n))


def random_program(number: int, seed: int = 0) -> RandomProgram:
    """One random program whose answers depend on more than the own token and position, and are not all alike."""
    rng = random_streams.rng(seed, "random programs").spawn(number + 1)[number]
    while not _is_worth_it(step := _drawn(rng)):
        pass
    own = values(step, ALL_INPUTS)
    for change, changed in CHANGES.items():
        candidates = list(changed(step))
        for place in rng.permutation(len(candidates)).tolist():
            apart = float((values(candidates[place], ALL_INPUTS) != own).any(axis=1).mean())
            if 0 < apart < NEARLY:
                return RandomProgram(number, step, candidates[place], change, apart)
    raise AssertionError("an exception for three tokens changes every program a little")


def _drawn(rng: np.random.Generator) -> Step:
    """A random program, whose last step is the whole; each reads any two or more before it, the latest most."""
    found = [Step("tokens"), Step("places")]
    for _ in range(int(rng.integers(*STEPS))):
        name = str(rng.choice(list(KINDS)))
        kind = KINDS[name]
        share = np.arange(1, len(found) + 1) / sum(range(1, len(found) + 1))
        reads = tuple(found[i] for i in rng.choice(len(found), kind.n_reads, p=share))
        found.append(Step(name, reads, tuple(int(rng.integers(n)) for n in kind.cells)))
    return found[-1]


def _is_worth_it(step: Step) -> bool:
    """Whether answers depend on more than the own token and position, and are not nearly all the same."""
    answers = values(step, ALL_INPUTS)
    if np.bincount(answers.ravel()).max() > MOST_OF_ONE * answers.size:
        return False
    return any(
        np.ptp(answers[ALL_INPUTS[:, position] == token, position]) > 0
        for position in range(LENGTH)
        for token in range(N_VALUES)
    )


def _with_another_cell(step: Step) -> Iterator[Step]:
    """Every program that differs in one cell of the table of one of its steps."""
    for one in ordered(step):
        cells = KINDS[one.kind].cells if one.kind in KINDS else ()
        for place, n in enumerate(cells):
            for other in range(n):
                if other != one.table[place]:
                    table = (*one.table[:place], other, *one.table[place + 1 :])
                    yield _replaced(step, one, replace(one, table=table))


def _with_another_read(step: Step) -> Iterator[Step]:
    """Every program in which one step reads another one than it did, of those before it."""
    order = ordered(step)
    for i, one in enumerate(order):
        for place, read in enumerate(one.reads):
            for other in order[:i]:
                if other != read:
                    reads = (*one.reads[:place], other, *one.reads[place + 1 :])
                    yield _replaced(step, one, replace(one, reads=reads))


def _with_an_exception(step: Step) -> Iterator[Step]:
    """Every program that says 1 more, modulo 3, where the last three tokens are certain ones."""
    last = [_at_last(place) for place in range(N_VALUES)]
    more = Step("map", (step,), tuple((value + 1) % N_VALUES for value in range(N_VALUES)))
    for wanted in range(N_VALUES**3):
        which, third = divmod(wanted, N_VALUES)
        two = Step("pair", (last[0], last[1]), tuple(int(cell == which) for cell in range(N_VALUES**2)))
        cell = N_VALUES + third
        three = Step("pair", (two, last[2]), tuple(int(one == cell) for one in range(N_VALUES**2)))
        yield Step("where", (three, more, step))


def _at_last(place: int) -> Step:
    """The token at the last position that is this modulo 3."""
    places = Step("places")
    is_there = tuple(int(key == place) for key in range(N_VALUES) for _ in range(N_VALUES))
    return Step("latest", (places, places, Step("tokens")), (*is_there, 0))


def _replaced(step: Step, old: Step, new: Step) -> Step:
    if step == old:
        return new
    return replace(step, reads=tuple(_replaced(read, old, new) for read in step.reads))


CHANGES: Mapping[str, Callable[[Step], Iterator[Step]]] = MappingProxyType(
    {"cell": _with_another_cell, "read": _with_another_read, "exception": _with_an_exception}
)
"""How a program is changed, in the order in which it is tried."""
