import json
from dataclasses import asdict, replace

from rasplens.learned.compressor.report import CompressionReport
from rasplens.learned.training.loop import Timed

REPORT = CompressionReport(d=4, seed=3, step=20, of=60, output_loss=0.25, layer_loss=1.5)


def test_it_comes_back_from_a_history_as_it_was():
    timed = replace(REPORT, seconds=1.5)
    assert CompressionReport(**json.loads(json.dumps(asdict(timed)))) == timed


def test_the_loop_can_fill_in_the_seconds():
    assert isinstance(REPORT, Timed)
    assert REPORT.seconds == 0
