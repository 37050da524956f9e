"""Inputs that tell two programs apart."""

import numpy as np
import pytest
from two_back import AT_ONCE, STEP_BY_STEP

from rasplens.compare import discriminate
from rasplens.compile.rasp import Aggregate, Map, Select, SequenceMap, indices, tokens
from rasplens.tasks import task_from_program


@pytest.fixture(scope="module")
def distinguishing(task):
    return discriminate(task.programs["offset"], task.programs["induction"], task, n=50)


def test_alternative_programs_are_told_apart_by_their_answers(distinguishing, task):
    assert distinguishing.by == "answers"
    assert len(distinguishing) == 50
    offset, induction = (task.answers(task.programs[name], distinguishing.ids) for name in ("offset", "induction"))
    np.testing.assert_allclose((offset != induction).mean(axis=1), distinguishing.difference)
    np.testing.assert_array_equal(offset != induction, distinguishing.answers)
    assert (distinguishing.difference > 0).all()
    assert (np.diff(distinguishing.difference) <= 0).all()  # the most distinguishing first
    plain = task.sample(np.random.default_rng(0), 200)
    ordinary = task.answers(task.programs["offset"], plain) != task.answers(task.programs["induction"], plain)
    assert ordinary.mean() < distinguishing.difference.min()


def test_inputs_are_distinct_and_the_seeds(distinguishing, task):
    assert len(np.unique(distinguishing.ids, axis=0)) == 50
    again, other = (
        discriminate(task.programs["offset"], task.programs["induction"], task, n=50, seed=seed) for seed in (0, 1)
    )
    np.testing.assert_array_equal(again.ids, distinguishing.ids)
    assert not np.array_equal(other.ids, distinguishing.ids)


def test_programs_with_the_same_answers_are_told_apart_by_what_they_read(task):
    found = discriminate(AT_ONCE, STEP_BY_STEP, task, n=20)
    np.testing.assert_array_equal(task.answers(AT_ONCE, found.ids), task.answers(STEP_BY_STEP, found.ids))
    assert found.by == "attention"
    assert len(found) == 20
    np.testing.assert_allclose(found.difference, 1)  # two back against one back: nothing in common


@pytest.mark.slow
def test_a_program_is_not_told_from_itself(task):
    for program in (AT_ONCE, task.programs["induction"]):
        found = discriminate(program, program, task)
        assert len(found) == 0
        assert found.ids.shape == (0, task.n_ctx)


def test_no_more_inputs_than_differ_are_given(task):
    """Programs that differ on one letter alone."""
    other = Map(lambda letter: "B" if letter == "A" else letter, AT_ONCE).named("other")
    found = discriminate(AT_ONCE, other, task, n=10_000)
    same = task.answers(AT_ONCE, found.ids) == task.answers(other, found.ids)
    assert 0 < len(found) < 600
    assert not same.all(axis=1).any()


def test_at_least_one_input_is_asked_for(task):
    with pytest.raises(ValueError, match=r"n of discriminate.* 1; got 0"):
        discriminate(AT_ONCE, STEP_BY_STEP, task, n=0)


def test_inputs_that_tell_apart_are_the_tasks_own_or_not(distinguishing, task):
    """The task repeats its block throughout; the others do not."""
    repeats = (distinguishing.ids[:, 3:] == distinguishing.ids[:, :-3]).all(axis=1)
    np.testing.assert_array_equal(distinguishing.of_task, repeats)
    assert 0 < repeats.sum() < len(repeats)


def test_of_a_small_task_nearly_all_inputs_are_tried():
    """Also those that it holds out: an exception for one input in 81 is found wherever it is."""
    plain = Map(lambda token: token, tokens).named("plain")
    for wanted in ([0, 1, 2, 0], [2, 2, 1, 1], [1, 0, 0, 0], [0, 0, 2, 1]):
        is_there = [
            Aggregate(Select(indices, indices, lambda key, query, at=at: key == at), tokens) for at in range(4)
        ]
        hits = [
            Map(lambda token, value=value: token == value, own)
            for own, value in zip(is_there, wanted, strict=True)
        ]
        both = SequenceMap(
            lambda a, b: a and b,
            SequenceMap(lambda a, b: a and b, hits[0], hits[1]),
            SequenceMap(lambda a, b: a and b, hits[2], hits[3]),
        )
        other = SequenceMap(lambda token, hit: 5 if hit else token, tokens, both).named("other")
        small = task_from_program(plain, range(3), 4)
        found = discriminate(plain, other, small)
        assert small.sequences(found.ids) == [wanted]
