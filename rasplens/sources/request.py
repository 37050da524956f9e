"""What a comparison on the command line is asked for."""

from dataclasses import dataclass
from pathlib import Path

from rasplens.compare import CompareConfig
from rasplens.learned.importers.readings import Declared
from rasplens.tasks import Task


@dataclass(frozen=True)
class Request:
    """Models, programs and how much to look at.

    Attributes:
        task: What both are asked.
        models: Files of models; none for the shipped one.
        programs: Names or files of programs; none for the task's own.
        config: How much is looked at.
        seed: Of the choice of inputs and of the controls.
        as_part: Whether the programs describe a part of the model.
        declared: What is said of models that do not say it themselves.
        device: Where language models run.
        expected: The accuracy that the models should have, in [0, 1]; None if nothing is said.
    """

    task: Task
    models: tuple[Path, ...]
    programs: tuple[str, ...]
    config: CompareConfig
    seed: int
    as_part: bool
    declared: Declared
    expected: float | None
    device: str = "cpu"
