"""The tasks by name."""

from collections.abc import Callable, Mapping
from inspect import signature

from rasplens.errors import RaspLensError, meant
from rasplens.tasks.shipped.compression import compression, compression_notebook
from rasplens.tasks.shipped.copy import copy
from rasplens.tasks.shipped.induction import induction
from rasplens.tasks.shipped.sort import sort
from rasplens.tasks.task import Task

TASKS: Mapping[str, Callable[..., Task]] = {
    "sort": sort,
    "copy": copy,
    "compression": compression,
    "compression_notebook": compression_notebook,
    "induction": induction,
}
"""The function that builds each task; see there for its sizes."""


def get_task(name: str, **sizes: int) -> Task:
    """A task by name, in its published size unless told otherwise.

    Raises:
        RaspLensError: If there is no such task, or it has no such size.
    """
    if name not in TASKS:
        raise RaspLensError(f"There is no task {name!r}.{meant(name, TASKS)} There are {', '.join(TASKS)}.")
    known = signature(TASKS[name]).parameters
    if unknown := [size for size in sizes if size not in known]:
        raise RaspLensError(f"Task {name!r} has no size {unknown[0]!r}. It has {', '.join(known)}.")
    return TASKS[name](**sizes)


def as_task(task: Task | str) -> Task:
    """A task, or the one of a name.

    Raises:
        RaspLensError: If it is neither.
    """
    if isinstance(task, Task):
        return task
    if isinstance(task, str):
        return get_task(task)
    raise RaspLensError(f"A task is a Task, or the name of one ({', '.join(TASKS)}); got {task!r}.")
