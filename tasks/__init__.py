"""The tasks: copy, compression, sort, and any RASP program."""

from rasplens.tasks.catalogue import TASKS, get_task
from rasplens.tasks.from_program import task_from_program
from rasplens.tasks.task import Accuracy, Task

__all__ = ["TASKS", "Accuracy", "Task", "get_task", "task_from_program"]
