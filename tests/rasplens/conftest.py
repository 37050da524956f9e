"""The command line in process, in a folder of its own."""

import pytest

from rasplens.cli import main

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
