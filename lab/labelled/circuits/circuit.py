"""Two programs for one task, and what programs of circuits are written with."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rasplens.compile.rasp import Aggregate, Comparison, Select, Selector, SOp, indices, tokens
from rasplens.tasks import Task, task_from_program
from rasplens.tasks.from_program import N_HELD_OUT
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs
from rasplens.tasks.task import Ids


@dataclass(frozen=True, eq=False)
class Circuit:
    """Two programs for one task.

    Attributes:
        name: For tables.
        task: Builds the task.
        program: Builds the program.
        alternative: Builds another that computes something else inside.
        family: How the two differ.
        share: Of the task's inputs, those on which both give the same answers everywhere.
    """

    name: str
    task: Callable[[], Task]
    program: Callable[[], SOp]
    alternative: Callable[[], SOp]
    family: str = "plain"
    share: float = 1.0


def of_program(
    name: str,
    vocab: str | range,
    program: Callable[[], SOp],
    alternative: Callable[[], SOp],
    length: int = 5,
    family: str = "plain",
    share: float = 1.0,
) -> Circuit:
    """The circuit whose task is to compute its program on all sequences of one length."""
    return Circuit(name, lambda: task_from_program(program(), vocab, length), program, alternative, family, share)


def on_inputs(
    name: str,
    vocab: str | range,
    program: Callable[[], SOp],
    alternative: Callable[[], SOp],
    draw: Callable[[np.random.Generator, int], Ids],
    family: str,
) -> Circuit:
    """The circuit whose task is to compute its program on inputs of one kind, on which both programs agree.

    Args:
        name: Its name.
        vocab: The tokens.
        program: Builds the program.
        alternative: Builds the other one.
        draw: From a generator and a number, that many inputs, as ids.
        family: How the two differ.
    """

    def task() -> Task:
        held_out = held_out_inputs(draw, held_out_by_hash, N_HELD_OUT)
        whole = task_from_program(program(), vocab, held_out.shape[1])
        return replace(whole, draw=draw, held_out=held_out)

    return Circuit(name, task, program, alternative, family)


def moved(of: SOp, place: Callable[[int], int], name: str) -> SOp:
    """Return the values of an s-op at the place that each position looks at."""
    return Aggregate(Select(indices, indices, lambda key, query: key == place(query)), of).named(name)


def everything() -> Selector:
    """Every position, from every position."""
    return Select(tokens, tokens, Comparison.TRUE)
