"""A program, compiled for a task: over its tokens and positions, defined on its inputs."""

import numpy as np

from rasplens.compile import CompiledModel, compile_program
from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError
from rasplens.tasks.catalogue import as_task
from rasplens.tasks.task import Task

N_DOMAIN = 500
"""So many held-out inputs, and as many others, stand for a task's domain."""


def compile_for(
    task: Task | str, program: SOp | CompiledModel | str | None = None, *, optimize: bool = True
) -> CompiledModel:
    """A program, compiled for a task's inputs. It need not be defined on others, and refuses to answer there.

    Args:
        task: The task, or its name.
        program: An s-op, or the name of one of the task's programs, the first by default. What is compiled already
            is returned as it is.
        optimize: As for `compile_program`.

    Raises:
        RaspLensError: If it is no program, or the task has none of that name.
        CompileError: If it cannot be compiled, or is undefined on an input of the task.
    """
    task = as_task(task)
    if isinstance(program, CompiledModel):
        return program
    if program is None or isinstance(program, str):
        program = program_of(task, program)
    if not isinstance(program, SOp):
        raise RaspLensError(
            f"A program is an s-op, a CompiledModel, or the name of one of the programs of {task.name!r} "
            f"({', '.join(task.programs) or 'none'}); got {program!r}."
        )
    drawn = task.sample(np.random.default_rng(0), N_DOMAIN)
    domain = task.sequences(np.concatenate([task.held_out[:N_DOMAIN], drawn]))
    return compile_program(program, task.vocab, task.n_ctx, mask=task.visible, optimize=optimize, domain=domain)


def program_of(task: Task, name: str | None) -> SOp:
    """One of a task's programs, the first unless named.

    Raises:
        RaspLensError: If there is none of that name.
    """
    if not task.programs:
        raise RaspLensError(f"Task {task.name!r} has no program. Give one, as `program` or --program.")
    if name is not None and name not in task.programs:
        raise RaspLensError(f"Task {task.name!r} has no program {name!r}. It has {', '.join(task.programs)}.")
    return task.programs[next(iter(task.programs)) if name is None else name]
