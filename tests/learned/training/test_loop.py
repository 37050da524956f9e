"""The loop on a computation of which every bit is known: powers of two, one to a chunk."""

import itertools
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from rasplens.learned.training import loop
from rasplens.learned.training.loop import ChunkedRun, RunState, run
from rasplens.model import StorageError


@dataclass(frozen=True)
class Said:
    step: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Doubling(ChunkedRun[Said]):
    steps: int = 4
    report = Said

    @property
    def identity(self):
        return {"steps": self.steps}

    def layout(self):
        return {"value": np.zeros(1)}

    def first(self):
        return RunState({"value": np.ones(1)}, {"done": 0})

    def is_done(self, at):
        return at.notes["done"] == self.steps

    def chunk(self, at):
        done = at.notes["done"] + 1
        return RunState({"value": 2 * at.arrays["value"]}, {"done": done}, (*at.reports, Said(done)))


class StoppedError(Exception):
    """Stands for whatever ends a process between two chunks."""


def stop_at(step):
    def progress(report):
        if report.step == step:
            raise StoppedError

    return progress


def test_it_runs_chunk_after_chunk_and_reports_each_with_its_seconds():
    told = []
    end = run(Doubling(), told.append)
    assert end.arrays["value"] == 16
    assert [report.step for report in told] == [1, 2, 3, 4]
    assert tuple(told) == end.reports
    assert all(first.seconds < second.seconds for first, second in itertools.pairwise(told))
    assert end.seconds == told[-1].seconds


@pytest.mark.parametrize("step", [1, 2, 4])
def test_what_was_stopped_goes_on_where_it_was(tmp_path, step):
    path, told = tmp_path / "state.safetensors", []
    with pytest.raises(StoppedError):
        run(Doubling(), stop_at(step), path)
    end = run(Doubling(), told.append, path)
    assert [report.step for report in told] == list(range(step, 5))
    assert end.arrays["value"] == 16
    assert [report.step for report in end.reports] == [1, 2, 3, 4]
    assert [json.loads(line)["step"] for line in path.with_suffix(".jsonl").read_text().splitlines()] == [
        1,
        2,
        3,
        4,
    ]


def test_what_is_done_is_not_done_again(tmp_path):
    path = tmp_path / "state.safetensors"
    end = run(Doubling(), path=path)
    again = run(Doubling(), stop_at(4), path)
    assert again.arrays["value"] == 16
    assert again.reports == end.reports


def test_states_are_written_no_more_often_than_wanted_and_at_the_end(tmp_path, monkeypatch):
    written, save = [], loop.save_run

    def counted(*arguments):
        written.append(arguments[-1]["notes"]["done"])
        save(*arguments)

    monkeypatch.setattr(loop, "save_run", counted)
    run(Doubling(), path=tmp_path / "seldom.safetensors", save_every=1_000.0)
    run(Doubling(), path=tmp_path / "often.safetensors", save_every=0.0)
    assert written == [4, 1, 2, 3, 4]


def test_the_state_of_another_job_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    run(Doubling(), path=path)
    with pytest.raises(StorageError, match="steps was 4, now 5"):
        run(replace(Doubling(), steps=5), path=path)
