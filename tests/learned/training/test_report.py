import json
from dataclasses import asdict, replace

from rasplens.learned.training.loop import Timed
from rasplens.learned.training.report import Report

REPORT = Report(seed=3, step=20, loss=0.25, training_token=0.5, token=0.25, sequence=0.0)


def test_it_comes_back_from_a_history_as_it_was():
    timed = replace(REPORT, seconds=1.5)
    assert Report(**json.loads(json.dumps(asdict(timed)))) == timed


def test_the_loop_can_fill_in_the_seconds():
    assert isinstance(REPORT, Timed)
    assert REPORT.seconds == 0
