"""What models answer, against the program: on which inputs, and each answer by itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from known_trials import inputs_of, known_trials
from two_back import AT_ONCE, STEP_BY_STEP

from rasplens.compare import CompareConfig, as_studied_model, discriminate
from rasplens.compare.claims.answers import ANSWERS, AnswersOn, Behaviour, EachAnswer, behaviour
from rasplens.compare.claims.kind import Evidence
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN
from rasplens.compile import compile_program
from rasplens.compile.rasp import SequenceMap, indices
from rasplens.tasks.task import NO_ANSWER


@pytest.fixture(scope="module")
def distinguishing(task):
    return discriminate(task.programs["offset"], task.programs["induction"], task, n=50)


def test_a_model_agrees_with_itself_everywhere(with_itself, distinguishing):
    found = behaviour(replace(with_itself, distinguishing={"offset": distinguishing}), seed=0)
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
    assert all(trials.right.all() for trials in found.trials.values())
    assert found.table["right"][0] == with_itself.learned.right().mean()
    assert found.table["right"][1:].isna().all()


def test_a_rival_agrees_on_the_task_and_not_where_they_differ(induction, offset, task, distinguishing):
    from rasplens.compare import study_of

    study = study_of(
        induction, offset, task, CompareConfig(n_inputs=96), 0, distinguishing={"offset": distinguishing}
    )
    found = behaviour(study, seed=0)
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


@pytest.mark.slow
def test_what_counts_is_one_answer_of_each_input(with_noise):
    """So inputs are independent trials: on average they come to the agreement of all answers."""
    drawn = [behaviour(with_noise, seed=seed).trials["held out"] for seed in range(40)]
    whole = behaviour(with_noise, seed=0)
    assert len(whole.trials["held out"]) == whole.table["n"][0]
    assert np.mean([one.right for one in drawn]) == pytest.approx(whole.table["agreement"][0], abs=0.03)
    assert not np.array_equal(drawn[0].answer, drawn[1].answer)


def test_inputs_that_differ_in_attention_alone_say_nothing_of_answers(with_noise, task):
    reading = discriminate(AT_ONCE, STEP_BY_STEP, task, n=20)
    found = behaviour(replace(with_noise, distinguishing={"step_by_step": reading}), seed=0)
    assert found.table["inputs"].tolist() == ["held out", "out of distribution"]


def test_what_tells_programs_apart_is_asked_where_it_does(offset, task):
    """A program with another answer at one position of some inputs is asked there, and nowhere else."""
    from rasplens.compare import study_of

    last = task.loss_positions[-1]
    changed = SequenceMap(
        lambda letter, place: "B" if letter == "A" and place == last else letter, task.programs["offset"], indices
    ).named("changed")
    model = compile_program(changed, task.vocab, task.n_ctx, mask=task.visible)
    found = discriminate(task.programs["offset"], changed, task)
    assert (found.answers.sum(axis=1) == 1).all()
    study = study_of(offset, model, task, CompareConfig(n_inputs=96), 0, distinguishing={"changed": found})
    trials = behaviour(study, seed=0).trials
    assert not trials["against changed"].right.any()
    assert trials["held out"].right.mean() > 0.9


COLUMNS = ["inputs", "n", "agreement", "untrained", "right", "undefined", "exhaustive"]


def claims_on(study, behaved):
    return list(ANSWERS.claims(study, Evidence().also(ANSWERS, behaved), np.random.default_rng(0)))


def answers(study, agree, n, exhaustive):
    trials = known_trials(np.arange(n) < agree)
    table = pd.DataFrame(
        [("held out", n, agree / n, 0.1, 1.0, 0.0, exhaustive)],
        columns=COLUMNS,
    )
    behaved = Behaviour(table, {"held out": trials}, {}, {}, np.ones((2, n)))
    return claims_on(study, behaved)[0]


@pytest.mark.parametrize(
    ("agree", "n", "exhaustive", "status"),
    [
        (1000, 1000, False, HOLDS),
        (950, 1000, False, HOLDS),
        (945, 1000, False, OPEN),
        (900, 1000, False, FAILS),
        (20, 20, False, OPEN),  # too few to say
        (20, 20, True, HOLDS),  # there are no others
        (19, 20, True, HOLDS),
        (18, 20, True, FAILS),
        (18, 20, False, OPEN),
        (0, 1, False, OPEN),  # bad luck, perhaps
        (1, 2, False, OPEN),
        (0, 2, False, FAILS),
        (2, 4, False, FAILS),
    ],
)
def test_answers_have_to_agree_and_there_have_to_be_enough(with_itself, agree, n, exhaustive, status):
    one = answers(with_itself, agree, n, exhaustive)
    assert (one.level, one.subject, one.status) == ("answers", AnswersOn("held out"), status)
    assert (one.score, one.control, one.n) == (agree / n, 0.1, n)
    assert (one.low == one.score == one.high) == exhaustive


def differing(study, wrong):
    """The claim on held-out answers of a model that errs on some inputs of a task."""
    ids = np.random.default_rng(0).integers(0, 4, (1000, 4))
    inputs = inputs_of(ids)
    right = ~wrong(ids)
    trials = Trials(inputs, right, np.arange(1000), np.zeros(1000, dtype=int))
    table = pd.DataFrame([("held out", 1000, right.mean(), 0.1, 1.0, 0.0, False)], columns=COLUMNS)
    behaved = Behaviour(table, {"held out": trials}, {"held out": "on 'a a'"}, {}, np.ones((2, 1000)))
    return claims_on(study, behaved)[0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda ids: (ids[:, :2] == [3, 2]).all(axis=1), {"position 0 is 'd'", "position 1 is 'c'"}),  # 6 %
        (
            lambda ids: (ids[:, 1:] == [0, 1, 2]).all(axis=1),
            {f"position {i + 1} is {'abc'[i]!r}" for i in range(3)},
        ),
        (lambda ids: ids[:, 2] == 0, {"position 2 is 'a'"}),  # 25 %
    ],
)
def test_answers_that_differ_in_one_class_fail_there(with_itself, wrong, words):
    one = differing(with_itself, wrong)
    assert one.status == FAILS
    assert one.score > 0.7  # of all inputs
    assert ": 0.00, elsewhere 1.00" in one.reason
    assert set(one.except_where.partition(" (")[0].split(" and ")) == words
    assert one.counterexample == "on 'a a'"


def test_answers_that_differ_here_and_there_do_not_fail_in_a_class(with_itself):
    rng = np.random.default_rng(1)
    one = differing(with_itself, lambda ids: rng.random(len(ids)) < 0.03)
    assert (one.status, one.except_where) == (HOLDS, "")
    assert one.counterexample == "on 'a a'"


def test_an_input_on_which_answers_differ_is_named(offset, task):
    """With what both answer there."""
    from rasplens.compare import study_of

    induction = compile_program(task.programs["induction"], task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(offset, induction, task, CompareConfig(n_inputs=96), 0)
    behaved = behaviour(study, seed=0)
    agree = behaved.table.set_index("inputs")["agreement"]
    assert set(behaved.examples) == set(agree[agree < 1].index) != set()
    for said in behaved.examples.values():
        assert "the program answers" in said


def each_answer(study, by_answer):
    """The claim on each answer by itself, from how often it is given where it is due: `{code: (agree, n)}`."""
    trials = {code: known_trials(np.arange(n) < agree) for code, (agree, n) in by_answer.items()}
    table = pd.DataFrame([("held out", 200, 1.0, 0.1, 1.0, 0.0, False)], columns=COLUMNS)
    behaved = Behaviour(table, {"held out": known_trials([True] * 200)}, {}, trials, np.ones((2, 200)))
    return next((one for one in claims_on(study, behaved) if one.subject == EachAnswer()), None)


@pytest.mark.parametrize(
    ("rare", "status"),
    [((12, 12), HOLDS), ((11, 12), HOLDS), ((9, 12), OPEN), ((2, 12), FAILS), ((1, 1), HOLDS), ((0, 2), FAILS)],
)
def test_each_answer_has_to_be_given_where_it_is_due(with_itself, rare, status):
    one = each_answer(with_itself, {0: (190, 190), 1: rare})
    assert one.status == status
    assert not one.substantial
    if status != HOLDS:
        assert one.score == rare[0] / rare[1]
        assert repr(with_itself.task.outputs[1]) in one.reason


def test_one_answer_alone_is_not_asked_for_by_itself(with_itself):
    assert each_answer(with_itself, {0: (190, 190)}) is None
