"""Numbers are found again from what a model does under interventions."""

import dataclasses

import numpy as np
import pytest
from weighted_samples import LETTERS, reverse

from rasplens.compare.weighted.fit import FitConfig, fit
from rasplens.compare.weighted.statement import state
from rasplens.compile import programs
from rasplens.compile.weighted import as_transformer, numbers_of
from rasplens.errors import RaspLensError
from rasplens.tasks import compile_for, task_from_program

FEW = FitConfig(inputs=60, questions=200, steps=300, batch=64, rate=0.05)


@pytest.fixture(scope="module")
def task():
    return dataclasses.replace(task_from_program(programs.reverse(), LETTERS, 4), outputs=LETTERS)


@pytest.fixture(scope="module")
def model(task):
    return as_transformer(reverse(sharp=1.5), task.vocab, task.visible)


def test_the_numbers_of_a_model_are_found(task, model):
    told = []
    found = fit(reverse(sharp=0.1), model, task, FEW, progress=lambda done, loss: told.append(done))
    assert numbers_of(found)["sharp"] == pytest.approx([1.5], abs=0.05)
    assert numbers_of(found)["votes"] == pytest.approx([5.0], abs=0.1)
    assert told == list(range(1, FEW.steps + 1))


def test_what_is_held_stays(task, model):
    found = fit(reverse(sharp=0.1), model, task, dataclasses.replace(FEW, steps=20, held=("sharp",)))
    assert numbers_of(found)["sharp"] == np.float32(0.1)
    assert numbers_of(found)["votes"] != 5.0


def test_a_seed_gives_the_same_numbers(task, model):
    configs = [dataclasses.replace(FEW, steps=20, seed=seed) for seed in (1, 1, 2)]
    one, same, other = (fit(reverse(0.1), model, task, config) for config in configs)
    assert numbers_of(one)["sharp"] == numbers_of(same)["sharp"] != numbers_of(other)["sharp"]


def test_other_candidates_than_the_answers_are_refused(task, model):
    with pytest.raises(RaspLensError, match=r"candidates=task\.outputs"):
        fit(dataclasses.replace(reverse(), candidates=("a", "b")), model, task)


def test_an_unknown_name_is_refused(task, model):
    with pytest.raises(RaspLensError, match=r"'blunt'.*sharp"):
        fit(reverse(), model, task, FitConfig(held=("blunt",)))


def test_a_statement_has_the_program_between_floor_and_ceiling(task):
    """The true numbers agree everywhere; others agree less, and a hard program is judged by the same questions."""
    model = as_transformer(reverse(sharp=0.5), task.vocab, task.visible)
    hard = compile_for(task, programs.reverse())
    found = state(
        model, task, {"true": reverse(0.5), "sharp": reverse(9.0), "hard": hard}, {"itself": model}, n=100
    )
    table = found.table().set_index("name")
    assert (table.loc[["true", "itself"], ["answers", "values changed", "values kept"]] == 1).all(axis=None)
    assert table["numbers"].isna().to_dict() == {"true": False, "sharp": False, "hard": True, "itself": True}
    assert table.loc["true", "numbers"] == 2
    assert (table.loc[["sharp", "hard"], ["answers", "values changed"]] < 1).all(axis=None)
    assert found.n_questions["values"] > 20
    assert found.n_questions["keys"] == 0  # keys of reverse are positions, which no input changes
    assert np.isnan(table.loc["true", "keys changed"])


def test_what_cannot_be_asked_is_refused(task, model):
    with pytest.raises(RaspLensError, match="'one'"):
        state(model, task, {"one": reverse()}, {"one": model})
    undefined = task_from_program(
        programs.reverse(), LETTERS, 4
    )  # None is an answer of it, which no logit stands for
    with pytest.raises(RaspLensError, match="logit for each answer"):
        state(compile_for(undefined, programs.reverse()), undefined, {}, {})
