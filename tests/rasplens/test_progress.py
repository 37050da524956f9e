from types import SimpleNamespace

import pytest

from rasplens.compare.pipeline import STAGES
from rasplens.progress import Rate, comparison_report, progress_bar, sweep_report, training_report


@pytest.fixture
def shown():
    return []


@pytest.fixture
def advance(shown):
    return lambda *said: shown.append(said)


def at(step, seconds, seed=7):
    return SimpleNamespace(seed=seed, step=step, seconds=seconds, loss=0.5, token=0.75)


def test_the_time_left_is_that_of_the_remaining_steps_at_the_rate_after_compilation():
    rate = Rate(100)
    assert rate.of(at(10, 6.0)) == "JAX compilation and first steps: 6 s"  # five of them for compilation
    assert rate.of(at(20, 7.0)) == "10 steps/s  8 s left"
    assert rate.of(at(100, 15.0)) == "10 steps/s  0 s left"


@pytest.mark.parametrize(("n_models", "begins"), [(1, "loss"), (2, "seed 7  loss")])
def test_a_training_tells_its_seeds_apart_where_there_are_several(shown, advance, n_models, begins):
    report = training_report(advance, 100, n_models)
    report(at(25, 5.0))
    report(at(50, 10.0))
    assert shown == [
        (f"{begins} 0.5000  accuracy 0.7500  JAX compilation and first steps: 5 s", 25, 100),
        (f"{begins} 0.5000  accuracy 0.7500  5 steps/s  10 s left", 50, 100),
    ]


def test_a_comparison_counts_the_stages_that_are_done(shown, advance):
    report = comparison_report(advance, "mine")
    for stage in STAGES:
        report(stage)
    assert shown == [(f"mine: {stage}", i, len(STAGES)) for i, stage in enumerate(STAGES)]
    report("effects: heads of previous")
    assert shown[-1] == ("mine: effects: heads of previous", STAGES.index("effects"), len(STAGES))


def test_progress_goes_to_the_error_stream(capsys):
    with progress_bar("working") as advance:
        advance("half", 1, 2)
    assert capsys.readouterr().out == ""


def test_a_sweep_tells_failures_and_the_time_left(shown, advance):
    report = sweep_report(advance)
    report(SimpleNamespace(done=2, failed=0, total=5, seconds_left=float("nan")))
    report(SimpleNamespace(done=3, failed=1, total=5, seconds_left=12.2))
    assert shown == [("jobs  ", 2, 5), ("jobs  1 failed  12 s left", 3, 5)]
