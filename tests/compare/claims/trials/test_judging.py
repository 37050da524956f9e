"""Shares of trials, their intervals, and what follows."""

import numpy as np
import pytest
from known_trials import known_trials

from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    AT_MOST,
    FAILS,
    HOLDS,
    OPEN,
    Share,
    confidence_sequence,
    judged,
    known_share,
    least_trials,
    share,
)


@pytest.mark.parametrize(("right", "n"), [(0, 30), (7, 30), (29, 30), (30, 30), (150, 200)])
def test_an_interval_is_wilsons(right, n):
    """By hand: the roots of (p - score)² = z² p (1 - p) / n."""
    found, z = known_share(right / n, n), 1.959964
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
    found = [known_share(count / n, n) for count in counts]
    covered = sum(often for one, often in zip(found, times, strict=True) if one.low <= true <= one.high)
    assert 0.93 <= covered / 2_000 <= 0.975


def test_more_comparisons_widen_the_intervals():
    ends = [known_share(0.8, 100, comparisons) for comparisons in (1, 2, 10)]
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


def test_a_claim_may_need_more_and_fails_as_others_do():
    assert judged([between(0.8, 1.0)], at_least=0.8) == HOLDS
    assert judged([between(0.79, 1.0)], at_least=0.8) == OPEN
    assert judged([between(0.0, AT_MOST - 1e-6)], at_least=0.8) == FAILS


def test_all_parts_have_to_hold():
    holds, fails, open_ = between(0.9, 1.0), between(0.1, 0.3), between(0.6, 0.9)
    assert judged([holds, holds]) == HOLDS
    assert judged([holds, open_]) == OPEN
    assert judged([holds, fails]) == FAILS
    assert judged([open_, fails]) == FAILS


@pytest.mark.parametrize("comparisons", [1, 2, 10])
def test_the_least_trials_can_hold_and_fewer_could_not(comparisons):
    least = least_trials(AT_LEAST, comparisons)
    assert known_share(1.0, least, comparisons).low >= AT_LEAST
    assert known_share(1.0, least - 1, comparisons).low < AT_LEAST


def test_a_share_of_trials_is_that_of_a_known_number():
    right = np.arange(200) < 150
    assert share(known_trials(right), 3) == known_share(0.75, 200, 3)


@pytest.mark.parametrize(("right", "n"), [(0, 30), (1, 30), (75, 100), (299, 300), (300, 300)])
def test_a_confidence_sequence_is_where_the_mixture_martingale_stays_low(right, n):
    """By quadrature: the likelihood averaged over Beta(1/2, 1/2), over that at each end, is 1 / error."""
    low, high = confidence_sequence(right, n, 0.05)
    assert 0 <= low <= right / n <= high <= 1
    # With the share as sin² of an angle, that prior is uniform.
    shares = np.sin((np.arange(100_000) + 0.5) / 100_000 * np.pi / 2) ** 2
    averaged = np.mean(shares**right * (1 - shares) ** (n - right))
    for end in (low, high):
        if 0 < end < 1:
            assert averaged / (end**right * (1 - end) ** (n - right)) == pytest.approx(20, rel=1e-3)


@pytest.mark.slow
def test_asking_until_it_suits_ends_wilsons_coverage_and_not_that_of_a_confidence_sequence():
    """Looked at after every trial, up to 500, the true share leaves an interval far more often than once in 20."""
    rng, true, runs = np.random.default_rng(0), 0.75, 300
    counts, n = np.cumsum(rng.random((runs, 500)) < true, axis=1), np.arange(1, 501)

    def ever_misses(interval):
        within = {}
        for at in range(9, 500):
            for count in np.unique(counts[:, at]):
                low, high = interval(int(count), int(n[at]))
                within[count, at] = low <= true <= high
        return np.mean([not all(within[row[at], at] for at in range(9, 500)) for row in counts])

    assert ever_misses(lambda right, n: confidence_sequence(right, n, 0.05)) <= 0.05
    wilson = lambda right, n: (known_share(right / n, n).low, known_share(right / n, n).high)  # noqa: E731
    assert ever_misses(wilson) > 0.2
