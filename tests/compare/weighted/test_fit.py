"""Numbers are found again from what a model does under interventions."""

import dataclasses

import numpy as np
import pytest
from weighted_samples import LETTERS, reverse

from rasplens.compare.weighted.fit import FitConfig, fit
from rasplens.compile import programs
from rasplens.compile.weighted import as_transformer, numbers_of
from rasplens.errors import RaspLensError
from rasplens.tasks import task_from_program

FEW = FitConfig(inputs=60, questions=200, steps=300, batch=64, rate=0.05)


@pytest.fixture(scope="module")
def task():
    return dataclasses.replace(task_from_program(programs.reverse(), LETTERS, 4), outputs=LETTERS)


@pytest.fixture(scope="module")
def model(task):
    return as_transformer(reverse(sharp=1.5), task.vocab, task.visible)


@pytest.mark.slow
def test_the_numbers_of_a_model_are_found(task, model):
    told = []
    found = fit(reverse(sharp=0.1), model, task, FEW, progress=lambda done, loss: told.append(done))
    assert numbers_of(found)["sharp"] == pytest.approx([1.5], abs=0.05)
    assert numbers_of(found)["votes"] == pytest.approx([5.0], abs=0.1)
    assert told == list(range(1, FEW.steps + 1))


@pytest.mark.slow
def test_what_is_held_stays(task, model):
    found = fit(reverse(sharp=0.1), model, task, dataclasses.replace(FEW, steps=20, held=("sharp",)))
    assert numbers_of(found)["sharp"] == np.float32(0.1)
    assert numbers_of(found)["votes"] != 5.0


@pytest.mark.slow
def test_a_seed_gives_the_same_numbers(task, model):
    configs = [dataclasses.replace(FEW, questions=20, steps=3, seed=seed) for seed in (1, 1, 2)]
    one, same, other = (fit(reverse(0.1), model, task, config) for config in configs)
    assert numbers_of(one)["sharp"] == numbers_of(same)["sharp"] != numbers_of(other)["sharp"]


@pytest.mark.parametrize("candidates", [("a", "b"), ("c", "b", "a")])
def test_other_candidates_than_the_answers_are_refused(task, model, candidates):
    with pytest.raises(RaspLensError, match=r"candidates=task\.outputs"):
        fit(dataclasses.replace(reverse(), candidates=candidates), model, task)


def test_what_is_no_weighted_program_is_refused(task, model, unchecked):
    with pytest.raises(RaspLensError, match="is a Vote"):
        fit(programs.reverse(), model, task)


def test_an_unknown_name_is_refused(task, model):
    with pytest.raises(RaspLensError, match=r"'blunt'.*sharp"):
        fit(reverse(), model, task, FitConfig(held=("blunt",)))


@pytest.mark.slow
def test_a_rate_that_is_too_high_is_said(task, model):
    with pytest.raises(RaspLensError, match="lower rate"):
        fit(reverse(0.1), model, task, dataclasses.replace(FEW, steps=30, rate=3e38))


def test_strange_settings_are_refused():
    with pytest.raises(RaspLensError, match=r"FitConfig\.steps"):
        FitConfig(steps=0)
