"""The command line in process, in a folder of its own."""

import numpy as np
import pytest

from rasplens.cli import main
from rasplens.learned.compressor.compressed_model import compressed_by
from rasplens.sources import reference, tasks
from rasplens.tasks import get_task
from rasplens.workflows import run

PROGRAM = """
from rasplens.compile.rasp import Comparison, Select, SelectorWidth, tokens

histogram = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("histogram")
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own_program(folder):
    """A program file of a user's own, `mine.py`, in the working directory."""
    path = folder / "mine.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def cli(folder, capsys):
    """Runs a command and returns (exit code, standard output, error stream)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    return call


@pytest.fixture
def small_copy(folder, monkeypatch):
    """A file with a model of its second program, for the task `copy` with few letters, which commands now take."""
    task = get_task("copy", n_letters=8, block=3, length=9)
    for module in (tasks, run):
        monkeypatch.setattr(module, "get_task", lambda name: task)
    compiled = reference(task, "induction")
    compressed_by(compiled, np.eye(compiled.transformer.config.d_model)).save(folder / "own")
    return "own"
