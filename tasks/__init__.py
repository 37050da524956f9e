"""The tasks: copy, compression, sort, any RASP program, and a user's own."""

from rasplens.tasks.catalogue import TASKS, as_task, get_task
from rasplens.tasks.compiling import compile_for
from rasplens.tasks.completion import generated_accuracy, generated_answers
from rasplens.tasks.from_program import task_from_program
from rasplens.tasks.own.data_files import task_from_data
from rasplens.tasks.own.from_inputs import task_from_inputs
from rasplens.tasks.own.from_template import build_task
from rasplens.tasks.partial import partial_task
from rasplens.tasks.task import Accuracy, Task

__all__ = [
    "TASKS",
    "Accuracy",
    "Task",
    "as_task",
    "build_task",
    "compile_for",
    "generated_accuracy",
    "generated_answers",
    "get_task",
    "partial_task",
    "task_from_data",
    "task_from_inputs",
    "task_from_program",
]
