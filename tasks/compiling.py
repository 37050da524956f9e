"""A program, compiled for a task: over its tokens and positions, defined on its inputs."""

import numpy as np

from rasplens.compile import CompiledModel, compile_program
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.values import value_key
from rasplens.errors import RaspLensError
from rasplens.tasks.catalogue import as_task
from rasplens.tasks.task import Task

N_DOMAIN = 500
"""This many held-out inputs, and as many others, represent a task's domain."""


AnyProgram = SOp | CompiledModel | str
"""A program, compiled or not, or the name of one of the task's."""


def compile_for(task: Task | str, program: AnyProgram | None = None, *, optimize: bool = True) -> CompiledModel:
    """A program, compiled for a task's inputs. It need not be defined on others, and refuses to answer there.

    Nor need it be defined at positions at which no answer is read.

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
    asked = task.sequences(np.concatenate([task.held_out[:N_DOMAIN], drawn]))
    return compile_program(
        program,
        task.vocab,
        task.n_ctx,
        mask=task.visible,
        optimize=optimize,
        defined_on=asked,
        defined_at=task.loss_positions,
    )


def check_compiled_for(compiled: CompiledModel, task: Task) -> None:
    """Raises where a compiled model is not of one of a task's programs: its answers would be held against others.

    Raises:
        RaspLensError: If it is for other tokens, another length or other positions that see each other, or if it
            answers otherwise.
    """
    inputs = compiled.inputs
    if list(map(value_key, inputs.vocab)) != list(map(value_key, task.vocab)) or inputs.max_len != task.n_ctx:
        own, its = (", ".join(map(str, vocab)) for vocab in (inputs.vocab, task.vocab))
        raise RaspLensError(
            f"{compiled.output!r} is compiled for {inputs.max_len} tokens out of {own}; inputs of {task.name!r} "
            f"have {task.n_ctx} tokens out of {its}, in this order. Compile it with `compile_for`."
        )
    if not np.array_equal(inputs.visible, task.visible):
        raise RaspLensError(
            f"The mask of {compiled.output!r} differs from that of {task.name!r}. Compile it with `compile_for`."
        )
    if (right := task.accuracy(compiled, task.held_out[:N_DOMAIN]).token) < 1:
        raise RaspLensError(
            f"{compiled.output!r} is right on only {right:.3f} of the answers of {task.name!r}. Give a program "
            "that solves the task, or a task built from the program."
        )


def program_of(task: Task, name: str | None) -> SOp:
    """One of a task's programs, the first unless named.

    Raises:
        RaspLensError: If there is none of that name.
    """
    if not task.programs:
        raise RaspLensError(f"Task {task.name!r} has no program. Give one as `program` or --program.")
    if name is not None and name not in task.programs:
        raise RaspLensError(f"Task {task.name!r} has no program {name!r}. It has {', '.join(task.programs)}.")
    return task.programs[next(iter(task.programs)) if name is None else name]
