"""The benchmark of the library against itself: what it says of a program, and of one without a task."""

import importlib.util
from pathlib import Path

import pytest

from rasplens.compile.rasp import Map, tokens
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def library(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("library", BENCHMARKS / "library.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_program_is_compared_with_itself_and_with_a_disguise(library):
    found = list(library.rows("reverse", CATALOGUE["reverse"], "quick", 0))
    assert [row[1:3] for row in found] == [["itself", "implements"], ["disguised", "implements"]]
    assert library.summary(found, "quick").startswith(
        "### The library against itself (`quick`): 2 of 2 recognised"
    )


def test_a_program_that_has_a_value_on_a_single_input_has_no_task(library):
    inverse = Entry(lambda: Map(lambda token: 1 / token, tokens), (0, 1), 3)
    ((name, kind, said, _, why),) = library.rows("inverse", inverse, "quick", 0)
    assert (name, kind, said) == ("inverse", "–", "no task")
    assert "too few different inputs (1 were drawn)" in why
