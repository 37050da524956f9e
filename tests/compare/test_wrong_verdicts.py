"""Programs that were said to be implemented and are not, or of which it could not be told though it could."""

import itertools

import pytest

from rasplens.compare import CompareConfig, compare
from rasplens.compare.verdict.verdict import IMPLEMENTS, PARTLY
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Full,
    Map,
    Select,
    SelectorWidth,
    Where,
    indices,
    tokens,
)
from rasplens.model import disguise
from rasplens.tasks import build_task, compile_for, task_from_inputs, task_from_program

LENGTH = SelectorWidth(Select(tokens, tokens, lambda key, query: key != "PAD")).named("n")
REVERSE = Aggregate(Select(indices, LENGTH - 1 - indices, Comparison.EQ), tokens, default=None).named("rev")


@pytest.mark.slow
@pytest.mark.parametrize("instead", ["PAD", "?"])
def test_a_program_without_an_answer_is_not_implemented_by_a_model_that_has_one(instead):
    words = [word for n in (2, 3, 4) for word in itertools.product("abcd", repeat=n)]
    task = task_from_inputs("backwards", words, [list(word[::-1]) for word in words])
    some = Where(LENGTH == 4, REVERSE, Full(instead)).named("some")
    right = task.accuracy(some)
    assert right.sequence < 0.8
    found = compare(some, compile_for(task, REVERSE), task=task, config="quick")
    assert found.verdict.answer != IMPLEMENTS
    claim = found.verdict.claims.set_index("claim").loc["answers, held out"]
    assert claim["score"] == pytest.approx(right.sequence, abs=0.05)
    assert "it has none of the task's for" in claim["reason"]
    assert claim["n"] == found.n_inputs


def first_letter(pad):
    return build_task("first", "BOS {x:3-6} SEP", tokens="abcde", answers=lambda row: row[1], read="SEP", pad=pad)


BEFORE = Select(indices, indices, lambda key, query: key == query - 1)
PREVIOUS = Aggregate(BEFORE, tokens, default=None).named("prev")
BEHIND_BOS = Aggregate(Select(PREVIOUS, tokens, lambda key, query: key == "BOS"), tokens, default=None).named(
    "bos"
)
AT_1 = Aggregate(Select(indices, indices, lambda key, query: key == 1), tokens, default=None).named("at_1")


@pytest.mark.slow
def test_what_no_question_could_change_is_not_said_to_hold():
    """Where BOS always stands first, nothing tells whether a model looks for it: it need not have the head."""
    task = first_letter("right")
    found = compare(compile_for(task, BEHIND_BOS), compile_for(task, AT_1), task=task, config="quick")
    claims = found.verdict.claims.set_index("claim")
    gathers = claims.loc["prev gathers along its selector's edges"]
    assert gathers["status"] == "not testable"
    assert "questions that change an answer" in gathers["reason"]
    assert any("prev gathers" in reason for reason in found.verdict.reasons)


@pytest.mark.slow
def test_a_model_that_is_wrong_on_many_inputs_is_at_most_partly_the_same():
    task = first_letter("both")
    found = compare(compile_for(task, BEHIND_BOS), compile_for(task, AT_1), task=task, config="quick")
    assert found.verdict.levels["answers"] == PARTLY
    assert found.verdict.answer == PARTLY


ANY = SelectorWidth(Select(tokens, Full("x"), Comparison.EQ)).named("n_x")
MANY = Map(lambda n: n >= 4, ANY).named("many")
NEVER = Map(lambda n: n >= 9, ANY).named("never")


@pytest.mark.slow
@pytest.mark.parametrize("config", ["quick", CompareConfig(n_inputs=150)])
def test_an_answer_that_is_seldom_due_and_never_given_is_missed(config):
    """Of 1 % of the inputs the answer is True: a model that never says so is right on 99 %."""
    task = task_from_program(MANY, "abcdx", 6)
    found = compare(MANY, compile_for(task, NEVER), task=task, config=config)
    assert found.verdict.answer != IMPLEMENTS
    claims = found.verdict.claims.set_index("claim")
    assert claims.loc["answers, held out", "status"] == "holds"
    assert claims.loc["answers, each of them", "status"] == "fails"
    assert "where the program's answer is True" in claims.loc["answers, each of them", "reason"]
    same = compare(MANY, disguise(compile_for(task, MANY), seed=1), task=task, config=config)
    assert same.verdict.answer == IMPLEMENTS


@pytest.mark.slow
def test_a_task_with_few_inputs_is_asked_about_all_of_them():
    task = build_task("last", "BOS {x:2} SEP", tokens="abc", answers=lambda row: row[2], read="SEP")
    at_2 = Aggregate(Select(indices, indices, lambda key, query: key == 2), tokens, default=None).named("at_2")
    found = compare(at_2, compile_for(task, at_2), task=task, config="quick")
    claims = found.verdict.claims.set_index("claim")
    assert claims.loc["answers, all inputs", "n"] == 9
    assert "answers, held out" not in claims.index
    assert found.verdict.answer == IMPLEMENTS
