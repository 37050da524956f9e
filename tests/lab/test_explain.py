"""The benchmark of explanations."""

import importlib

import pandas as pd
import pytest

from lab.known_models import SOURCES, KnownModel
from rasplens.compare import explain
from rasplens.compile import programs, rasp
from rasplens.tasks import compile_for, task_from_program


@pytest.fixture(scope="module")
def bench():
    return importlib.import_module("lab.explain")


@pytest.mark.slow
def test_a_program_of_the_library_is_recovered_from_both_models(bench):
    found = pd.DataFrame(bench.rows("library", "offset", "quick", 0))
    found = found.assign(source="library", name="offset", error=None)
    assert list(found["found"]) == ["recovered", "recovered"]
    assert "2 of 2 recovered or not told apart, 0 of 2 false" in bench.summary(found)


@pytest.mark.slow
def test_a_program_that_the_truth_does_not_implement_is_false(bench):
    """The negative control: an explanation of another model is held against the truth."""
    task = task_from_program(programs.histogram(), "abc", 4)
    found = explain(compile_for(task), task=task, config="quick")
    assert bench.what(found, KnownModel("", None, task, [compile_for(task)]), 0) == "recovered"
    other = task_from_program(programs.reverse(), "abc", 4)
    of_other = explain(compile_for(other), task=other, config="quick")
    unmoved = compile_for(other, rasp.Map(lambda token: token, rasp.tokens).named("unmoved"))
    assert bench.what(of_other, KnownModel("", None, other, [unmoved]), 0) == "false"
    assert bench.what(of_other, KnownModel("", None, other, different=[unmoved]), 0) == "another"
    assert bench.what(of_other, KnownModel("", None, other, different=[compile_for(other)]), 0) == "false"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random_75", "random_92", "random_154"])
def test_programs_for_which_a_wrong_one_was_accepted_are_recovered(bench, name):
    """Pairs at a query's own position; a mean that no input has; two selectors that were taken for one."""
    (row,) = bench.rows("random", name, "standard", 0)
    assert row["found"] == "recovered"


def test_programs_without_a_task_and_jobs_that_failed_are_rows(bench):
    found = pd.DataFrame(
        [
            {"name": "a", "model": "–", "found": "no task", "why": "too few inputs", "error": None},
            {"name": "b", "model": None, "found": None, "why": None, "error": "TypeError: no"},
        ]
    ).assign(source="library")
    text = bench.summary(found)
    assert "| library | a | – | no task | – | – | too few inputs |" in text
    assert "| library | b | – | – | – | – | TypeError: no |" in text


def test_each_source_has_models_of_known_programs():
    """Not those of trained models, which are files."""
    for source, name in (("library", "offset"), ("random", "random_1"), ("hidden", "reverse")):
        assert name in SOURCES[source].names()
        for known in SOURCES[source].models(name):
            assert known.same or known.different
