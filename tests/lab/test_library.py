"""The benchmark of the library against itself: what it says of a program, and of one without a task."""

import importlib

import pandas as pd
import pytest

from rasplens.compile.rasp import Map, tokens
from rasplens.compile.rasp.programs.catalogue import Entry


@pytest.fixture
def library():
    return importlib.import_module("lab.library")


@pytest.mark.slow
def test_a_program_is_compared_with_itself_and_with_a_disguise(library):
    found = pd.DataFrame(library.rows("reverse", "quick", 0)).assign(name="reverse", config="quick", error=None)
    assert list(found["model"]) == ["itself", "disguised"]
    assert list(found["verdict"]) == ["implements", "implements"]
    assert library.summary(found).startswith("### The library against itself (`quick`): 2 of 2 recognised")


@pytest.mark.slow
def test_claims_on_answers_and_edges_are_counted_where_they_are_proved(library):
    found = pd.DataFrame(library.rows("next_larger", "quick", 0)).assign(
        name="next_larger", config="quick", error=None
    )
    assert (found["proved"] == 0).all()
    proved = found.assign(proved=found["provable"])
    n = proved["proved"].sum()
    assert n >= 8
    text = f"Of {n} claims on answers and edges, {n} are proved, 0 more row by row, and 0 have a counterexample"
    assert f"{text} (100.0%" in library.summary(proved)


def test_a_program_that_has_a_value_on_a_single_input_has_no_task(library):
    inverse = Entry(lambda: Map(lambda token: 1 / token, tokens), (0, 1), 3)
    (row,) = library.rows("inverse", "quick", 0, inverse)
    assert (row["model"], row["verdict"]) == ("–", "no task")
    assert "too few different inputs (1 were drawn)" in row["why"]


def test_a_job_that_failed_is_a_row_of_the_table(library):
    found = pd.DataFrame(
        [
            {
                "name": "a",
                "model": "itself",
                "verdict": "implements",
                "tested": "1 of 1",
                "why": "",
                "error": None,
            },
            {"name": "b", "model": None, "verdict": None, "tested": None, "why": None, "error": "TypeError: no"},
        ]
    ).assign(config="quick")
    assert "| b | – | – | – | – | TypeError: no |" in library.summary(found)
    assert "| b | – | – | – | – | TypeError: no |" in library.summary(found[1:].dropna(axis=1))
