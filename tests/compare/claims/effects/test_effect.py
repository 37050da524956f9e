"""The share of a model's own logit difference that moves."""

import numpy as np
import pytest
import torch

from rasplens.compare.claims.effects.effect import (
    Effect,
    LogitDifferences,
    kept,
    kept_of,
    left,
    turned,
    turned_of,
)

TRIALS = LogitDifferences(*(np.array(part) for part in ([0, 0, 2], [1, 0, 1], [0, 2, 3], [1, 1, 2])))


@pytest.mark.parametrize("namespace", [np.asarray, torch.tensor])
def test_differences_are_of_two_logits_of_one_answer(namespace):
    logits = namespace(np.random.default_rng(0).normal(size=(3, 2, 4)))
    found = TRIALS.of(logits)
    assert [float(one) for one in found] == [
        float(logits[0, 1, 0] - logits[0, 1, 1]),
        float(logits[0, 0, 2] - logits[0, 0, 1]),
        float(logits[2, 1, 3] - logits[2, 1, 2]),
    ]


def test_the_trials_of_some_pairs_are_found_by_their_place_among_these():
    logits = np.random.default_rng(0).normal(size=(3, 2, 4))
    np.testing.assert_array_equal(TRIALS.within(slice(1, 3)).of(logits[1:]), TRIALS.of(logits)[2:])
    assert len(TRIALS.within(slice(1, 2))) == 0


@pytest.mark.parametrize(
    ("effect", "share"),
    [(turned, {-1: 1, 0: 0.5, 1: 0}), (kept, {-1: 0, 0: 0.5, 1: 1}), (left, {0: 0, 0.5: 0.5, 1: 1})],
)
def test_a_share_runs_from_nothing_to_all_that_is_claimed(effect, share):
    before = np.array([1.0, 3.0])
    assert {after: effect(before, after * before).share for after in share} == share


def test_large_differences_count_for_more():
    assert turned(np.array([9.0, 1.0]), np.array([-9.0, 1.0])).share == pytest.approx(0.9)


def test_nothing_that_should_move_has_no_share():
    assert np.isnan(turned(np.zeros(3), np.zeros(3)).share)
    assert np.isnan(Effect(np.zeros(0), np.zeros(0)).share)


def test_what_heads_do_not_carry_stays_and_does_not_count():
    """Heads that carry half of the difference: at most half turns, and half stays whatever becomes of them."""
    before = np.array([1.0, 3.0])
    half_turned = before - before  # half of the way to the other answer
    assert turned(before, half_turned).share == 0.5
    assert turned_of(turned(before, half_turned), 0.5).share == 1.0
    assert kept(before, half_turned).share == 0.5
    assert kept_of(kept(before, half_turned), 0.5).share == 0.0
    for effect, of in ((turned(before, -before), turned_of), (kept(before, before), kept_of)):
        assert of(effect, 1.0).share == effect.share
    assert kept_of(kept(before, before), 0.5).share == 1.0


def test_intervals_cover_the_share_that_trials_are_drawn_of():
    rng, covered, wide = np.random.default_rng(0), 0, 0
    for _ in range(200):
        before = rng.exponential(size=120) + 0.2
        moved = 2 * before * rng.choice([0.2, 1.0], 120)  # of all that should, .6 moves
        found = Effect(moved, 2 * before).interval(200, rng)
        covered += found.low <= 0.6 <= found.high
        wide += found.high - found.low > 0.5
    assert covered >= 180
    assert not wide  # the negative control: they do not cover everything


def test_more_comparisons_make_intervals_wider():
    rng = np.random.default_rng(1)
    one = Effect(rng.random(80), np.ones(80))
    narrow, wide = (one.interval(2_000, np.random.default_rng(0), comparisons) for comparisons in (1, 20))
    assert wide.low < narrow.low < one.share < narrow.high < wide.high


def test_a_control_in_the_same_trials_is_told_apart_more_clearly():
    """Trials differ in how much moves, towards any answer; what they have in common cancels."""
    rng = np.random.default_rng(2)
    common = rng.random(100)
    own, other = Effect(common, np.ones(100)), Effect(common - 0.1, np.ones(100))
    above = own.above(other, 500, rng)
    assert above.score == pytest.approx(0.1)
    assert above.high - above.low < 0.02
    apart = own.interval(500, rng)
    assert apart.high - apart.low > 0.05
