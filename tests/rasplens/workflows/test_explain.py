"""`rasplens explain`."""

import json

import numpy as np
import pytest

from rasplens.compile import programs
from rasplens.learned.compressor.compressed_model import compressed_by
from rasplens.tasks import compile_for, task_from_program

TASK = ("mine.py:histogram", "--vocab", "a,b,c", "--max-len", "4", "--config", "quick")
MODEL = ("--learned", "model")


@pytest.fixture
def model(folder, own_program):
    """A model of the program, in a file."""
    compiled = compile_for(task_from_program(programs.histogram(), "abc", 4))
    compressed_by(compiled, np.eye(compiled.transformer.config.d_model)).save(folder / "model")


@pytest.mark.slow
@pytest.mark.usefixtures("model")
def test_it_prints_the_program_and_writes_a_file_that_other_commands_take(cli, folder):
    code, text, _ = cli("explain", *TASK, *MODEL, "--out", "found.py")
    assert code == 0
    assert (folder / "found.py").read_text() in text
    code, compared, _ = cli("compare", *TASK, *MODEL, "--program", "found.py:program", "--json")
    assert code == 0
    assert json.loads(compared)[0]["verdict"]["answer"] == "implements"
    code, _, error = cli("explain", *TASK, *MODEL, "--out", "found.py")
    assert code == 2
    assert "already exists" in error


@pytest.mark.slow
@pytest.mark.usefixtures("model")
def test_json_has_the_program_and_what_was_tried(cli):
    code, text, _ = cli("explain", *TASK, *MODEL, "--json")
    told = json.loads(text)
    assert code == 0
    assert told["programs"][0]["answer"] == "implements"
    assert told["tried"]


@pytest.mark.usefixtures("own_program")
def test_a_task_without_a_shipped_model_needs_one(cli):
    code, _, error = cli("explain", *TASK)
    assert code == 2
    assert "Train one" in error
