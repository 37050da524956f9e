"""The tasks: copy, compression, sort, and any RASP program."""

from rasplens.tasks.answers import answers
from rasplens.tasks.catalogue import TASKS, get_task
from rasplens.tasks.task import Accuracy, Task

__all__ = ["TASKS", "Accuracy", "Task", "answers", "get_task"]
