"""Classes of inputs in which trials fail."""

from dataclasses import replace

import numpy as np
import pytest
from known_trials import COPY, inputs_of, known_trials

from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import (
    LEAST_SHARE,
    MOST_SUSPECTED,
    conditions,
    suspected_classes,
    worst_class,
)
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.tasks import build_task

RNG = np.random.default_rng(0)
IDS = RNG.integers(0, 4, (400, 4))
INPUTS = inputs_of(IDS)
BASE, SOURCE, ANSWER = np.arange(200), np.arange(200, 400), RNG.integers(0, 4, 200)


def trials(right, source=SOURCE):
    return Trials(INPUTS, np.asarray(right), BASE, ANSWER, source)


def failing(where, rate=1.0):
    """Trials that fail where it is said, and nowhere else."""
    return ~where | (np.random.default_rng(1).random(len(where)) > rate)


AT_2 = IDS[BASE, 2] == 3
CLASSES = {
    "position 2 is 'd'": AT_2,
    "position 0 and position 3 are equal": IDS[BASE, 0] == IDS[BASE, 3],
    "the answer is read at position 1": ANSWER == 1,
    "the answer is 'c'": IDS[BASE, ANSWER] == 2,
}


@pytest.mark.parametrize("words", CLASSES)
def test_a_class_in_which_trials_fail_is_found(words):
    found = worst_class(trials(failing(CLASSES[words], 0.8)))
    assert found.words == words
    np.testing.assert_array_equal(found.of(trials(np.ones(200, dtype=bool))), CLASSES[words])


def test_a_class_can_be_described_by_several_conditions():
    both = AT_2 & (IDS[BASE, 0] == 1)
    found = worst_class(trials(failing(both)))
    assert set(found.words.split(" and ")) == {"position 2 is 'd'", "position 0 is 'b'"}
    share = ((IDS[:, 2] == 3) & (IDS[:, 0] == 1)).mean()
    assert found.share == pytest.approx(share)


def test_what_a_source_has_tells_as_well():
    found = worst_class(trials(failing(IDS[SOURCE, 1] == 0)))
    assert found.conditions == (("position 1 is 'a'", True),)
    assert found.words == "position 1 is 'a'"
    assert worst_class(trials(failing(IDS[SOURCE, 1] == 0), source=None)) is None


def test_what_base_and_source_have_together_is_told_apart():
    """Position 2 cannot be 'd' and 'a' at once: the share of such a class was 0, and so it was left out."""
    both = AT_2 & (IDS[SOURCE, 2] == 0)
    found = worst_class(trials(failing(both)))
    assert set(found.conditions) == {("position 2 is 'd'", False), ("position 2 is 'a'", True)}
    assert found.words == "position 2 is 'd' and position 2 is 'a' in the source"
    assert found.share == pytest.approx((IDS[:, 2] == 3).mean() * (IDS[:, 2] == 0).mean())


@pytest.mark.slow
def test_trials_that_fail_by_chance_hardly_show_a_class():
    """By a permutation test at 0.5 % for each number of conditions, of which there are three."""
    draws = [np.random.default_rng(seed).random(200) < 0.8 for seed in range(30)]
    assert sum(worst_class(trials(right)) is not None for right in draws) <= 2


def test_a_few_failures_or_nothing_but_failures_show_no_class():
    assert worst_class() is None
    assert worst_class(trials(np.ones(200, dtype=bool))) is None
    assert worst_class(trials(np.zeros(200, dtype=bool))) is None
    assert worst_class(trials(np.arange(200) >= 4)) is None
    assert worst_class(known_trials([True] * 50 + [False] * 50)) is None  # all on one input


def test_a_few_failures_make_a_class_suspect_and_show_none():
    both = AT_2 & (IDS[BASE, 0] == 1)
    right = np.ones(200, dtype=bool)
    right[np.flatnonzero(both)[:4]] = False
    assert worst_class(trials(right)) is None
    found = suspected_classes(trials(right))
    assert {"position 2 is 'd'", "position 0 is 'b'"} in [set(one.words.split(" and ")) for one in found]
    assert all((~right[one.of(trials(right))]).mean() >= 0.35 for one in found)


def test_of_descriptions_of_the_same_trials_the_shortest_is_suspected():
    right = np.ones(200, dtype=bool)
    right[np.flatnonzero(AT_2)[:30]] = False
    found = suspected_classes(trials(right))
    assert 1 <= len(found) <= MOST_SUSPECTED
    assert found[0].words == "position 2 is 'd'"
    members = [one.of(trials(right)).tobytes() for one in found]
    assert len(set(members)) == len(members)


def test_a_class_of_hardly_any_input_is_not_suspected():
    """Few inputs are drawn as the task draws them: those of the class stand behind them."""
    both = AT_2 & (IDS[BASE, 0] == 1)
    rare = AnsweredInputs(INPUTS.task, IDS, INPUTS.answers, 3)
    right = np.ones(200, dtype=bool)
    right[np.flatnonzero(both)[:4]] = False
    asked = replace(trials(right), inputs=rare)
    assert suspected_classes(trials(right))
    assert all(one.share >= LEAST_SHARE for one in suspected_classes(asked))
    assert len(suspected_classes(asked)) < len(suspected_classes(trials(right)))


def test_a_class_is_suspected_on_three_failures_or_more():
    right = np.ones(200, dtype=bool)
    assert suspected_classes() == suspected_classes(trials(right)) == suspected_classes(trials(~right)) == []
    right[np.flatnonzero(AT_2)[:2]] = False
    assert suspected_classes(trials(right)) == []


def test_claims_together_show_a_class_that_each_shows_too_little_of():
    few = np.flatnonzero(AT_2)[:12]
    rows = np.setdiff1d(BASE, np.flatnonzero(AT_2)[12:])
    parts = []
    for failed in np.array_split(few, 4):
        right = np.ones(200, dtype=bool)
        right[failed] = False
        chosen = np.isin(BASE, np.union1d(failed, np.setdiff1d(rows, few)))
        parts.append(trials(right).of(chosen))
    assert all(worst_class(part) is None for part in parts)
    assert worst_class(*parts).words == "position 2 is 'd'"


def test_lengths_are_conditions_where_inputs_are_padded():
    task = build_task("last", "BOS {x:1-4} SEP", tokens="ab", answers=lambda row: row[-2], read="SEP")
    inputs, n = inputs_of(task.held_out, task), len(task.held_out)
    met = conditions(Trials(inputs, np.ones(n, dtype=bool), np.arange(n), np.zeros(n, dtype=int)))
    pad = task.vocab.index(task.padding)
    lengths = (inputs.ids != pad).sum(axis=1)
    np.testing.assert_array_equal(met["there are 4 tokens", False], lengths == 4)
    assert (lengths == 4).any()


def test_every_token_at_every_position_is_a_condition():
    met = conditions(trials(np.ones(200, dtype=bool)))
    for position in range(4):
        for token, name in enumerate(COPY.vocab):
            column = met[f"position {position} is {name!r}", False]
            np.testing.assert_array_equal(column, IDS[BASE, position] == token)
    np.testing.assert_array_equal(met["'a' occurs", True], (IDS[SOURCE] == 0).any(axis=1))
