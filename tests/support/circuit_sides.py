"""A labelled circuit with both of its programs compiled."""

from lab.labelled.circuits import CIRCUITS, HARD
from rasplens.compile import CompiledModel, compile_program
from rasplens.tasks import Task


def sides(name: str) -> tuple[Task, CompiledModel, CompiledModel]:
    """The task of a circuit, its program and its alternative program."""
    circuit = {**CIRCUITS, **HARD}[name]
    task = circuit.task()
    first, second = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.alternative)
    )
    return task, first, second
