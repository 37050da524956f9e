"""Inputs that tell programs apart, and what models answer there."""

import numpy as np
import pytest

from rasplens.compare import CompareConfig, as_studied_model, discriminate
from rasplens.compare.evidence.behaviour import behaviour
from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Map, Select, SequenceMap, indices, tokens
from rasplens.tasks import task_from_program
from rasplens.tasks.task import NO_ANSWER


def back(steps):
    return Select(indices, indices, lambda key, query: key == query - steps)


AT_ONCE = Aggregate(back(2), tokens).named("at_once")
STEP_BY_STEP = Aggregate(back(1), Aggregate(back(1), tokens).named("one_back")).named("step_by_step")


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
    with pytest.raises(ValueError, match="n of at least 1; got 0"):
        discriminate(AT_ONCE, STEP_BY_STEP, task, n=0)


def test_a_model_agrees_with_itself_everywhere(with_itself, distinguishing):
    found = behaviour(with_itself, {"offset": distinguishing}, seed=0)
    assert found.table["inputs"].tolist() == [
        "held out",
        "against offset",
        "against offset, out of distribution",
        "out of distribution",
    ]
    assert found.table["n"][1] == distinguishing.of_task.sum()
    assert found.table["n"][1:3].sum() == len(distinguishing)
    assert found.table["exhaustive"].tolist() == [True, False, False, False]
    assert (found.table["agreement"] == 1).all()
    assert found.table["untrained"].max() < 0.4
    assert found.agrees.shape == (2, found.table["n"][:2].sum())
    assert (found.agrees[0] == 1).all()
    assert {kind: len(trials) for kind, trials in found.trials.items()} == dict(
        zip(found.table["inputs"], found.table["n"], strict=True)
    )
    assert all(trials.all() for trials in found.trials.values())
    assert found.table["right"][0] == with_itself.learned.right().mean()
    assert found.table["right"][1:].isna().all()


def test_a_rival_agrees_on_the_task_and_not_where_they_differ(induction, offset, task, distinguishing):
    from rasplens.compare import pair

    found = behaviour(
        pair(induction, offset, task, CompareConfig(n_inputs=96), 0), {"offset": distinguishing}, seed=0
    )
    share = found.table.set_index("inputs")["agreement"]
    both = [as_studied_model(model, task, task.held_out).answers() for model in (induction, offset)]
    assert share["held out"] == pytest.approx((both[0] == both[1]).mean())
    assert (both[0] == NO_ANSWER).any()  # no answer is one as well
    for kind, wanted in (("against offset", True), ("against offset, out of distribution", False)):
        ids = distinguishing.ids[distinguishing.of_task == wanted]
        asked, said = (as_studied_model(model, task, ids).answers() for model in (induction, offset))
        defined = (asked >= 0) | wanted
        expected = ((asked == said) & defined).sum(axis=1) / np.maximum(1, defined.sum(axis=1))
        assert share[kind] < 0.5
        assert share[kind] == pytest.approx(expected[defined.any(axis=1)].mean())


def test_inputs_that_tell_apart_are_the_tasks_own_or_not(distinguishing, task):
    """The task repeats its block throughout; the others do not."""
    repeats = (distinguishing.ids[:, 3:] == distinguishing.ids[:, :-3]).all(axis=1)
    np.testing.assert_array_equal(distinguishing.of_task, repeats)
    assert 0 < repeats.sum() < len(repeats)


def test_what_counts_is_one_answer_of_each_input(with_noise):
    """So inputs are independent trials: on average they come to the agreement of all answers."""
    drawn = [behaviour(with_noise, {}, seed=seed).trials["held out"] for seed in range(40)]
    whole = behaviour(with_noise, {}, seed=0)
    assert whole.trials["held out"].shape == (whole.table["n"][0],)
    assert np.mean(drawn) == pytest.approx(whole.table["agreement"][0], abs=0.03)
    assert not np.array_equal(drawn[0], drawn[1])


def test_inputs_that_differ_in_attention_alone_say_nothing_of_answers(with_noise, task):
    reading = discriminate(AT_ONCE, STEP_BY_STEP, task, n=20)
    found = behaviour(with_noise, {"step_by_step": reading}, seed=0)
    assert found.table["inputs"].tolist() == ["held out", "out of distribution"]


def test_what_tells_programs_apart_is_asked_where_it_does(offset, task):
    """A program with another answer at one position of some inputs is asked there, and nowhere else."""
    from rasplens.compare import pair

    last = task.loss_positions[-1]
    changed = SequenceMap(
        lambda letter, place: "B" if letter == "A" and place == last else letter, task.programs["offset"], indices
    ).named("changed")
    model = compile_program(changed, task.vocab, task.n_ctx, mask=task.visible)
    found = discriminate(task.programs["offset"], changed, task)
    assert (found.answers.sum(axis=1) == 1).all()
    pairing = pair(offset, model, task, CompareConfig(n_inputs=96), 0)
    trials = behaviour(pairing, {"changed": found}, seed=0).trials
    assert not trials["against changed"].any()
    assert trials["held out"].mean() > 0.9


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
