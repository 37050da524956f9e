"""The weighted programs of the shipped models are of the sizes that were asked for, and say what they should."""

import dataclasses

import numpy as np
import pytest

from lab.weighted.figure import figure
from lab.weighted.numbers import keep, kept
from lab.weighted.readings import READINGS, read, section
from rasplens.compare.weighted import FitConfig
from rasplens.compile.weighted import answers, inputs_of, numbers_of
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task


@pytest.fixture(scope="module")
def programs():
    return {name: reading.program(load_pretrained(name)) for name, reading in READINGS.items()}


@pytest.mark.parametrize(("name", "most"), [("copy", 30), ("sort", 600), ("compression", 150)])
def test_programs_have_few_numbers(programs, name, most):
    assert programs[name].n_numbers <= most
    assert programs[name].candidates == get_task(name).outputs


def test_copy_votes_for_the_letter_behind_a_match(programs):
    """Before any fit: where the query's letter stood once, what followed it."""
    task = get_task("copy")
    ids = task.held_out[:200]
    said = answers(
        programs["copy"], inputs_of(programs["copy"], ids, task.vocab, task.visible, task.loss_positions)
    )
    assert (said == task.target(ids)).mean() > 0.5


@pytest.mark.slow
def test_a_reading_is_fitted_and_stated(monkeypatch):
    few = FitConfig(inputs=200, questions=200, steps=200, batch=64, rate=0.05)
    monkeypatch.setitem(READINGS, "copy", dataclasses.replace(READINGS["copy"], fits=[few]))
    model = load_pretrained("copy")
    _, statement = read("copy", model, {"itself": model})
    table = statement.table().set_index("name")
    assert (table.loc["itself", ["answers", "values changed", "keys changed"]] == 1).all()
    assert table.loc["weighted", "keys changed"] > table.loc["hard: offset", "keys changed"] + 0.2
    text = section("copy, a test", statement.table(), READINGS["copy"].parts)
    assert text.startswith("### copy, a test")
    assert "| weighted | 25 |" in text


def test_the_figure_has_a_panel_for_each_task(programs):
    drawn = figure({name: numbers_of(program) for name, program in programs.items()})
    assert [text.text.partition(":")[0] for text in drawn.layout.annotations] == ["copy", "sort", "compression"]
    assert len(drawn.data) == 4
    assert np.allclose(drawn.data[2].y, [4 - 0.33 * abs(knot) for knot in drawn.data[2].x])


def test_numbers_are_kept(programs, tmp_path):
    keep(programs["copy"], "copy", tmp_path)
    found, own = kept("copy", tmp_path), numbers_of(programs["copy"])
    assert list(found) == list(own)
    assert all(np.allclose(found[name], own[name]) for name in own)
