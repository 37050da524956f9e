"""Claims, and what their trials say of them."""

import json
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest
from known_trials import known_trials
from subjects import subject

from rasplens.compare.claims.catalogue import SUBJECTS
from rasplens.compare.claims.claim import (
    AT_LEAST,
    AT_MOST,
    COLUMNS,
    FAILS,
    HOLDS,
    OPEN,
    UNTESTABLE,
    Level,
    Share,
    Subject,
    claims_table,
    judged,
    judged_by_trials,
    least_trials,
    share,
    untestable,
)


def trials(right, n):
    return np.arange(n) < right


def part(right, n):
    return known_trials(trials(right, n))


@pytest.mark.parametrize(("right", "n"), [(0, 30), (7, 30), (29, 30), (30, 30), (150, 200)])
def test_an_interval_is_wilsons(right, n):
    """By hand: the roots of (p - score)² = z² p (1 - p) / n."""
    found, z = share(trials(right, n)), 1.959964
    assert (found.score, found.n) == (right / n, n)
    middle = (found.score + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(found.score * (1 - found.score) / n + z**2 / (4 * n**2))
    assert found.low == pytest.approx(middle - half, abs=1e-6)
    assert found.high == pytest.approx(middle + half, abs=1e-6)


@pytest.mark.parametrize("n", [150, 300])
@pytest.mark.parametrize("true", [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
def test_an_interval_covers_the_true_share_as_often_as_it_says(true, n):
    drawn = np.random.default_rng(0).binomial(n, true, size=2_000)
    counts, times = np.unique(drawn, return_counts=True)
    found = [share(trials(count, n)) for count in counts]
    covered = sum(often for one, often in zip(found, times, strict=True) if one.low <= true <= one.high)
    assert 0.93 <= covered / 2_000 <= 0.975


def test_more_comparisons_widen_the_intervals():
    ends = [share(trials(80, 100), comparisons) for comparisons in (1, 2, 10)]
    assert ends[0].low > ends[1].low > ends[2].low
    assert ends[0].high < ends[1].high < ends[2].high
    z = 2.241403  # of 97.5 %
    middle = (0.8 + z**2 / 200) / (1 + z**2 / 100)
    assert (ends[1].low + ends[1].high) / 2 == pytest.approx(middle, abs=1e-5)


def between(low, high):
    return Share((low + high) / 2, low, high, 100)


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (AT_LEAST, 1.0, HOLDS),
        (AT_LEAST - 1e-6, 1.0, OPEN),
        (0.0, AT_MOST - 1e-6, FAILS),
        (0.0, AT_MOST, OPEN),
        (AT_MOST, AT_LEAST, OPEN),
        (0.0, 1.0, OPEN),
    ],
)
def test_a_claim_is_judged_by_the_ends_of_its_interval(low, high, status):
    assert judged([between(low, high)]) == status


def test_all_parts_have_to_hold():
    holds, fails, open_ = between(0.9, 1.0), between(0.1, 0.3), between(0.6, 0.9)
    assert judged([holds, holds]) == HOLDS
    assert judged([holds, open_]) == OPEN
    assert judged([holds, fails]) == FAILS
    assert judged([open_, fails]) == FAILS


def by_trials(*parts, comparisons=1):
    return judged_by_trials(subject("routes"), parts, 0.2, True, "why", comparisons)


def test_a_claim_has_the_score_of_its_least_part():
    found = by_trials(part(100, 100), part(60, 80))
    least = share(trials(60, 80))
    assert (found.score, found.low, found.high, found.n) == (0.75, least.low, least.high, 80)
    assert (found.subject, found.level, found.control, found.substantial, found.reason) == (
        subject("routes"), "routes", 0.2, True, "why",
    )  # fmt: skip
    assert found.status == OPEN


def test_the_interval_of_a_claim_is_no_narrower_than_that_of_any_part():
    """The lowest ends, of whichever part."""
    few, many = trials(20, 20), trials(290, 300)
    found = by_trials(known_trials(few), known_trials(many))
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


@pytest.mark.parametrize("comparisons", [1, 2, 10])
def test_the_least_trials_can_hold_and_fewer_could_not(comparisons):
    least = least_trials(AT_LEAST, comparisons)
    assert share(trials(least, least), comparisons).low >= AT_LEAST
    assert share(trials(least - 1, least - 1), comparisons).low < AT_LEAST


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
    made = kind(**{field.name: values.get(field.name, field.name) for field in fields(kind)})
    again = Subject.from_dict(json.loads(json.dumps(made.to_dict())), SUBJECTS)
    assert again == made
    assert hash(again) == hash(made)
    assert again.level in get_args(Level)
    assert str(again)
