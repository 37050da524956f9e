"""The tasks by name."""

from collections.abc import Callable, Mapping

from rasplens.tasks.compression import compression, compression_notebook
from rasplens.tasks.copy import copy
from rasplens.tasks.induction import induction
from rasplens.tasks.sort import sort
from rasplens.tasks.task import Task

TASKS: Mapping[str, Callable[..., Task]] = {
    "sort": sort,
    "copy": copy,
    "compression": compression,
    "compression_notebook": compression_notebook,
    "induction": induction,
}
"""What builds each task; see the functions for their sizes."""


def get_task(name: str, **sizes: int) -> Task:
    """A task by name, in its published size unless told otherwise.

    Raises:
        ValueError: If there is no such task.
    """
    if name not in TASKS:
        raise ValueError(f"There is no task {name!r}. There are {', '.join(TASKS)}.")
    return TASKS[name](**sizes)
