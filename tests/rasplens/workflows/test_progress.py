from types import SimpleNamespace

import pytest

from rasplens.compare.pipeline import STAGES
from rasplens.workflows.progress import comparison_report, time_left, training_report


@pytest.fixture
def shown():
    return []


@pytest.fixture
def advance(shown):
    return lambda *said: shown.append(said)


def test_the_time_left_is_that_of_the_remaining_steps_at_the_same_rate():
    assert time_left(SimpleNamespace(step=25, seconds=5.0), 100) == "15 s left"
    assert time_left(SimpleNamespace(step=100, seconds=20.0), 100) == "0 s left"


@pytest.mark.parametrize(("n_models", "begins"), [(1, "loss"), (2, "seed 7  loss")])
def test_a_training_tells_its_seeds_apart_where_there_are_several(shown, advance, n_models, begins):
    now = SimpleNamespace(seed=7, step=25, seconds=5.0, loss=0.5, token=0.75)
    training_report(100, n_models, advance)(now)
    assert shown == [(f"{begins} 0.5000  accuracy 0.7500  5 steps/s  15 s left", 25, 100)]


def test_a_comparison_counts_the_stages_that_are_done(shown, advance):
    report = comparison_report("mine", advance)
    for stage in STAGES:
        report(stage)
    assert shown == [(f"mine: {stage}", i, len(STAGES)) for i, stage in enumerate(STAGES)]
