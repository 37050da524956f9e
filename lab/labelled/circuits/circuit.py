"""Two programs for one task."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rasplens.compile.rasp import SOp
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


def family(name: str, *circuits: Circuit) -> tuple[Circuit, ...]:
    """Circuits whose programs differ in one way."""
    return tuple(replace(circuit, family=name) for circuit in circuits)


def of_program(
    name: str, vocab: str | range, program: SOp, alternative: SOp, length: int = 5, share: float = 1.0
) -> Circuit:
    """The circuit whose task is to compute its program on all sequences of one length."""
    task = lambda: task_from_program(program, vocab, length)  # noqa: E731
    return Circuit(name, task, lambda: program, lambda: alternative, share=share)


def on_inputs(
    name: str,
    vocab: str | range,
    program: SOp,
    alternative: SOp,
    draw: Callable[[np.random.Generator, int], Ids],
) -> Circuit:
    """The circuit whose task is to compute its program on inputs of one kind, on which both programs agree.

    `draw` gives, from a generator and a number, that many inputs as ids.
    """

    def task() -> Task:
        held_out = held_out_inputs(draw, held_out_by_hash, N_HELD_OUT)
        whole = task_from_program(program, vocab, held_out.shape[1])
        return replace(whole, draw=draw, held_out=held_out)

    return Circuit(name, task, lambda: program, lambda: alternative)
