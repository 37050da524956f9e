"""Claims, and what their trials say of them."""

import json
from dataclasses import fields, replace
from typing import get_args

import numpy as np
import pytest
from known_trials import known_trials
from subjects import subject

from rasplens.compare.claims.catalogue import SUBJECTS
from rasplens.compare.claims.claim import (
    COLUMNS,
    Enumerated,
    Level,
    Subject,
    claims_table,
    judged_by_trials,
    untestable,
)
from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    FAILS,
    HOLDS,
    OPEN,
    UNTESTABLE,
    least_trials,
    share,
)


def part(right, n):
    return known_trials(np.arange(n) < right)


def by_trials(*parts, comparisons=1):
    return judged_by_trials(subject("routes"), parts, 0.2, True, "why", comparisons)


def test_a_claim_has_the_score_of_its_least_part():
    found = by_trials(part(100, 100), part(60, 80))
    least = share(part(60, 80))
    assert (found.score, found.low, found.high, found.n) == (0.75, least.low, least.high, 80)
    assert (found.subject, found.level, found.control, found.substantial, found.reason) == (
        subject("routes"), "routes", 0.2, True, "why",
    )  # fmt: skip
    assert found.status == OPEN


def test_the_interval_of_a_claim_is_no_narrower_than_that_of_any_part():
    """The lowest ends, of whichever part."""
    few, many = part(20, 20), part(290, 300)
    found = by_trials(few, many)
    assert found.score == pytest.approx(290 / 300)
    assert found.low == min(share(few).low, share(many).low)
    assert found.high == share(many).high


def test_a_part_with_few_trials_does_not_count():
    least = least_trials(AT_LEAST)
    wrong = part(0, least - 1)
    assert by_trials(part(100, 100), wrong).status == HOLDS
    assert by_trials(part(100, 100), part(0, least)).status == FAILS
    nothing = by_trials(wrong, part(3, 3))
    assert nothing.status == UNTESTABLE
    assert nothing.reason == "11 pairs of inputs could be asked, where 12 are needed"
    assert by_trials().reason == "0 pairs of inputs could be asked, where 12 are needed"


def test_more_comparisons_make_a_claim_harder_to_hold():
    assert by_trials(part(84, 100)).status == HOLDS
    assert by_trials(part(84, 100), comparisons=10).status == OPEN
    assert by_trials(part(20, 20), comparisons=10).status == UNTESTABLE


def test_what_cannot_be_tested_has_no_score():
    found = untestable(subject("variables"), "no pairs")
    assert (found.status, found.n, found.substantial, found.reason) == (UNTESTABLE, 0, False, "no pairs")
    assert np.isnan([found.score, found.low, found.high, found.control]).all()


def test_the_table_has_a_row_per_claim():
    found = claims_table([by_trials(part(100, 100)), untestable(subject("variables"), "no pairs")])
    assert tuple(found) == COLUMNS
    assert found["kind"].tolist() == ["routes", "variables"]
    assert found["status"].tolist() == [HOLDS, UNTESTABLE]
    assert claims_table([]).empty


@pytest.mark.parametrize("kind", SUBJECTS, ids=lambda kind: kind.__name__)
def test_every_subject_has_a_level_and_words_and_survives_json(kind):
    values = {"aggregates": ("a", "b"), "heads": ((0, 1), (2, 3)), "compiled": (1, 0)}
    values |= {"source": ("a",), "reader": ("b", "c"), "part": "keys"}
    made = kind(**{field.name: values.get(field.name, field.name) for field in fields(kind)})
    again = Subject.from_dict(json.loads(json.dumps(made.to_dict())), SUBJECTS)
    assert again == made
    assert hash(again) == hash(made)
    assert again.level in get_args(Level)
    assert str(again)


def test_a_claim_on_all_questions_is_proved_or_has_a_counterexample():
    whole = by_trials(part(100, 100))
    proved = whole.on_all(Enumerated("all 64 pairs", 40, 0, ""))
    assert (proved.status_words, proved.score, proved.low, proved.n) == ("holds (all 64 pairs)", 1, 1, 40)
    refuted = whole.on_all(Enumerated("all 64 pairs", 40, 2, "on 'a'"))
    assert (refuted.status_words, refuted.proof) == (HOLDS, "")
    assert refuted.counterexample == "2 of 40 questions on all 64 pairs are answered otherwise: on 'a'"
    assert proved.is_proved
    assert not whole.is_proved
    nothing = untestable(subject("routes"), "no pairs")
    assert nothing.on_all(Enumerated("all 64 pairs", 40, 0, "")) is nothing


def test_row_by_row_a_claim_keeps_the_interval_of_its_trials():
    """Several rows at once are left to chance: what they leave open stays open."""
    rows = Enumerated("all 64 pairs, row by row", 40, 0, "", is_all=False)
    held = by_trials(part(100, 100))
    few = replace(held, status=OPEN)
    by_row = held.on_all(rows)
    assert by_row.status_words == "holds (all 64 pairs, row by row)"
    assert (by_row.score, by_row.low, by_row.n, by_row.is_proved) == (held.score, held.low, held.n, False)
    assert few.on_all(rows) is few
    assert held.on_all(replace(rows, wrong=1, example="on 'a'")).counterexample


def test_where_a_trial_came_out_otherwise_nothing_is_proved():
    """Then what was called all is not: of a task's inputs some were never drawn."""
    seen = replace(by_trials(part(99, 100)), counterexample="on 'b'")
    assert seen.on_all(Enumerated("all 64 pairs", 40, 0, "")) is seen
