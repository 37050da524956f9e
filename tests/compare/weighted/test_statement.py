"""Agreement with a model stands beside a floor and a ceiling, with intervals, over the answers asked for."""

import dataclasses

import numpy as np
import pytest
from weighted_samples import LETTERS, reverse

from rasplens.compare.weighted.statement import _share, state
from rasplens.compile import programs
from rasplens.compile.weighted import as_transformer
from rasplens.errors import RaspLensError
from rasplens.tasks import compile_for, task_from_program


@pytest.fixture(scope="module")
def task():
    return dataclasses.replace(task_from_program(programs.reverse(), LETTERS, 4), outputs=LETTERS)


@pytest.fixture(scope="module")
def model(task):
    return as_transformer(reverse(sharp=0.5), task.vocab, task.visible)


def test_a_program_stands_between_floor_and_ceiling(task, model):
    """The true numbers agree everywhere; others agree less, and a hard program is judged by the same questions."""
    hard = compile_for(task, programs.reverse())
    beside = {"true": reverse(0.5), "sharp": reverse(9.0), "hard": hard, "itself": model}
    table = state(model, task, beside, n=100).table().set_index("name")
    assert (table.loc[["true", "itself"], ["answers", "values changed", "values kept"]] == 1).all(axis=None)
    assert table["numbers"].isna().to_dict() == {"true": False, "sharp": False, "hard": True, "itself": True}
    assert table.loc["true", "numbers"] == 2
    worse = table.loc[["sharp", "hard"]]
    assert (worse[["answers", "values changed"]] < 1).all(axis=None)
    assert (worse["values changed low"] < worse["values changed"]).all()
    assert (worse["values changed"] < worse["values changed high"]).all()
    assert table.loc["true", "values changed n"] > 20
    assert table.loc["true", "keys changed n"] == 0  # keys of reverse are positions, which no input changes
    assert np.isnan(table.loc["true", "keys changed"])


def test_only_answers_that_are_asked_for_count(task, model):
    """A program that is right at two positions only agrees everywhere if no other answer is asked for."""
    first = dataclasses.replace(task, asked=lambda ids: np.broadcast_to(np.arange(4) < 2, (len(ids), 4)))
    sharp = as_transformer(reverse(9.0), task.vocab, task.visible)
    half = reverse(9.0, most=2)
    everywhere, asked = (state(sharp, one, {"half": half}, n=60).table().loc[0] for one in (task, first))
    assert everywhere["answers"] < 1
    assert asked["answers"] == asked["values changed"] == asked["values kept"] == 1
    assert asked["answers n"] == everywhere["answers n"] // 2


@pytest.mark.parametrize("candidates", [("a", "b"), ("c", "b", "a")])
def test_a_program_with_other_candidates_is_refused(task, model, candidates):
    with pytest.raises(RaspLensError, match=r"candidates=task\.outputs"):
        state(model, task, {"other": dataclasses.replace(reverse(), candidates=candidates)})


def test_a_model_without_a_logit_for_an_answer_is_refused():
    undefined = task_from_program(programs.reverse(), LETTERS, 4)  # no logit stands for its answer None
    with pytest.raises(RaspLensError, match="logit for each answer"):
        state(compile_for(undefined, programs.reverse()), undefined, {})


def test_a_share_has_an_interval_over_questions():
    rng = np.random.default_rng(0)
    agrees = np.repeat(rng.random((200, 1)) < 0.5, 10, axis=1)  # the ten answers of a question hang together
    found = _share(agrees, np.ones_like(agrees), rng)
    assert found.n == 2_000
    assert found.high - found.low > 0.1
    alone = rng.random((200, 10)) < 0.5
    spread = _share(alone, np.ones_like(alone), rng)
    assert spread.high - spread.low < 0.06
    nothing = _share(agrees, np.zeros_like(agrees), rng)
    assert nothing.n == 0
    assert np.isnan(nothing.score)
