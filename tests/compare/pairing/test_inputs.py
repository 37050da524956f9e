"""On which inputs models are compared."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare.pairing.inputs import (
    MOST_RARE,
    PROBED,
    all_inputs,
    balance,
    balanced,
    fitting_inputs,
    scored_inputs,
)
from rasplens.compile.rasp import Comparison, Full, Map, Select, SelectorWidth, tokens
from rasplens.tasks import build_task, task_from_program

MANY = Map(lambda n: n >= 5, SelectorWidth(Select(tokens, Full("x"), Comparison.EQ))).named("many")


@pytest.fixture(scope="module")
def seldom():
    """Of a thousand inputs, one or two have five x."""
    return task_from_program(MANY, "abcdx", 6)


def last_letter(n, letters):
    return build_task("last", f"BOS {{x:{n}}} SEP", tokens=letters, answers=lambda row: row[n], read="SEP")


def is_rare(task, ids):
    return (task.answers(MANY, ids) == task.answer_code(True)).any(axis=1)


def test_inputs_with_rare_answers_stand_behind_those_that_are_drawn(seldom):
    rng = np.random.default_rng(0)
    scored, fitting = (draw(seldom, MANY, 200, rng) for draw in (scored_inputs, fitting_inputs))
    for inputs in (scored, fitting):
        rare = is_rare(seldom, inputs.ids)
        assert rare[: inputs.n_drawn].mean() < 0.02
        assert rare[inputs.n_drawn :].all()
        assert 2 <= len(inputs.ids) - inputs.n_drawn <= MOST_RARE * 200
        assert len(np.unique(inputs.ids[inputs.n_drawn :], axis=0)) == len(inputs.ids) - inputs.n_drawn
    assert seldom.is_held_out(scored.ids).all()
    assert not seldom.is_held_out(fitting.ids).any()


def test_where_no_answer_is_rare_nothing_is_added(task):
    inputs = scored_inputs(task, task.programs["induction"], 60, np.random.default_rng(0))
    assert (len(inputs.ids), inputs.n_drawn) == (60, 60)


@pytest.mark.slow
def test_all_inputs_are_listed_where_there_are_few():
    found = all_inputs(last_letter(3, "abc"))
    assert len(found) == 27
    assert {tuple(row[1:4]) for row in found.tolist()} == set(itertools.product(sorted({*found[:, 1]}), repeat=3))
    assert all_inputs(last_letter(4, "abcde")) is None
    assert len(all_inputs(last_letter(4, "abcde"), PROBED + 1)) == 5**4


def test_hardly_any_input_is_drawn_of_a_task_that_has_many():
    drawn = []

    def draw(rng, n):
        drawn.append(n)
        return task.draw(rng, n)

    task = last_letter(8, "abcdef")
    assert all_inputs(replace(task, draw=draw), 65_536) is None
    assert sum(drawn) == PROBED


@pytest.mark.slow
def test_few_held_out_inputs_are_no_measure():
    task = last_letter(2, "abcd")
    program = tokens
    inputs = scored_inputs(task, program, 200, np.random.default_rng(0))
    assert inputs.n_drawn == 16 > len(task.held_out)


def test_rare_answers_are_asked_about_half_as_often_as_all_others():
    codes = np.zeros((1000, 1), dtype=int)
    codes[:5] = 1
    share = balance(codes)
    assert share.sum() == pytest.approx(1)
    assert share[:5].sum() == pytest.approx(0.25, abs=0.01)
    drawn = balanced(share, np.arange(1000), 2_000, np.random.default_rng(0))
    assert (drawn < 5).mean() == pytest.approx(0.25, abs=0.05)
    assert balance(np.repeat([[0], [1]], 500, axis=0)) is None  # neither is rare
    assert balance(np.full((10, 1), -1)) is None
    assert len(balanced(share, np.arange(0), 0, np.random.default_rng(0))) == 0
