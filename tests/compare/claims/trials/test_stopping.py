"""Asking until a claim is decided."""

import numpy as np
import pytest
from known_trials import known_trials

from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN, judged, share
from rasplens.compare.claims.trials.stopping import FIRST, MOST_TIMES, looks, until_decided

N = 300


class Asked:
    """Answers as many questions as are asked, each as claimed with a known probability."""

    def __init__(self, *rates, seed=0, most=np.inf):
        self.rates, self.rng, self.most, self.numbers = rates, np.random.default_rng(seed), most, []

    def __call__(self, n):
        self.numbers.append(n)
        return [known_trials(self.rng.random(int(min(n, self.most))) < rate) for rate in self.rates]

    @property
    def n(self):
        return sum(self.numbers)


@pytest.mark.parametrize("rates", [(1.0, 1.0), (1.0, 0.0), (0.3, 1.0)])
def test_what_is_clear_is_asked_a_third_of_the_questions(rates):
    asked = Asked(*rates)
    parts = until_decided(asked, looks(N), 1)
    assert asked.numbers == [FIRST]
    assert all(part.stopped and len(part) == FIRST for part in parts)
    assert judged([share(part) for part in parts]) == (HOLDS if rates == (1.0, 1.0) else FAILS)


def test_one_trial_that_fails_asks_for_as_many_as_are_configured():
    asked = Asked(0.97, 1.0)
    parts = until_decided(asked, looks(N), 1)
    assert asked.numbers == [FIRST, N - FIRST]
    assert [len(part) for part in parts] == [N, N]
    assert judged([share(part) for part in parts]) == HOLDS


def test_an_open_claim_is_asked_on():
    runs = [(asked := Asked(0.82, seed=seed), until_decided(asked, looks(N), 1)) for seed in range(20)]
    longer = [[share(part) for part in parts] for asked, parts in runs if asked.n > N]
    assert len(longer) > 10
    decided = [judged(shares) for shares in longer]
    assert decided.count(HOLDS) > 0.7 * len(decided)
    assert FAILS not in decided
    never = Asked(0.7)
    parts = until_decided(never, looks(N), 1)
    assert never.n == MOST_TIMES * N
    assert judged([share(part) for part in parts]) == OPEN


def test_asking_may_stop_after_the_first_and_after_as_many_as_are_configured():
    assert looks(300) == (100, 300, 600, 900, 1200)
    assert looks(100) == (100, 200, 300, 400)
    assert looks(40) == (40, 80, 120, 160)


def test_few_configured_questions_are_asked_at_once():
    asked = Asked(1.0)
    (part,) = until_decided(asked, looks(40), 1)
    assert asked.numbers == [40]
    assert part.stopped


def test_a_part_of_too_few_questions_decides_nothing_about_how_many():
    asked = Asked(0.5, most=30)
    (part,) = until_decided(asked, looks(N), 1)
    assert asked.numbers == [FIRST]
    assert len(part) == 30
    assert not part.stopped


def test_more_comparisons_ask_more():
    def mean_asked(comparisons):
        runs = [Asked(0.81, seed=seed) for seed in range(20)]
        for asked in runs:
            until_decided(asked, looks(N), comparisons)
        return np.mean([asked.n for asked in runs])

    assert mean_asked(1) < mean_asked(20)


MORE = (pytest.param(share, marks=pytest.mark.slow) for share in (0.5, 0.62, 0.65, 0.7, 0.75, 0.78, 0.85, 0.99))


@pytest.mark.slow
@pytest.mark.parametrize("true", [0.95, *MORE])
def test_intervals_cover_however_asking_stopped(true):
    """Over 1,000 runs: at least 95 % (but for what 1,000 runs leave to chance)."""
    covered = []
    for seed in range(1_000):
        (part,) = until_decided(Asked(true, seed=seed), looks(N), 1)
        found = share(part)
        covered.append(found.low <= true <= found.high)
    assert np.mean(covered) >= 0.95
