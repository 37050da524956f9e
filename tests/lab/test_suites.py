"""The timing of suites, on checkouts of one test each: what it says of them, not how long they take."""

import importlib
from pathlib import Path

import pytest


@pytest.fixture
def suites():
    return importlib.import_module("lab.suites")


def checkout(folder: Path, text: str) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(text)
    return folder


@pytest.mark.slow
def test_a_suite_is_that_of_its_checkout(suites, tmp_path):
    folder = checkout(tmp_path, "from here import yes\n\ndef test_it():\n    assert yes\n")
    (folder / "here.py").write_text("yes = True\n")
    found = suites.timed(["pytest"], folder)
    assert found.counts == "1 passed"
    assert found.wall > 0
    assert found.work > 0


@pytest.mark.slow
def test_failures_are_counted_and_a_suite_that_cannot_run_stops_it(suites, tmp_path):
    assert suites.timed(["pytest"], checkout(tmp_path, "def test_it():\n    assert 0\n")).counts == "1 failed"
    with pytest.raises(SystemExit, match=r"(?s)pytest in .*SyntaxError"):
        suites.timed(["pytest"], checkout(tmp_path, "def"))


def test_the_ratio_is_how_many_times_as_long_the_other_takes_by_the_clock(suites):
    here = [suites.Timing(wall, 200.0, "9 passed") for wall in (100.0, 1000.0, 60.0)]
    other = [suites.Timing(wall, 290.4, "7 passed, 1 failed") for wall in (250.0, 250.0, 10.0)]
    assert suites.row("slow", here, other) == [
        "`pytest -m slow`", "2.5×", "1:40", "3:20", "4:10", "4:50", "9 passed", "7 passed, 1 failed",
    ]  # fmt: skip
    assert suites.row("fast", here)[:2] == ["`pytest`", "–"]
    assert len(suites.row("fast", here)) == len(suites.HEADINGS)


def test_checkouts_take_turns(suites, monkeypatch):
    asked = []

    def timed(command, tree):
        asked.append((command[-1], tree.name))
        return suites.Timing(1.0, 1.0, "1 passed")

    monkeypatch.setattr(suites, "timed", timed)
    rows = list(suites.rows(["fast", "slow"], [Path("ours"), Path("theirs")], 2))
    assert asked == [(last, tree) for last in ("pytest", "slow") for tree in 2 * ("ours", "theirs")]
    assert [row[0] for row in rows] == ["`pytest`", "`pytest -m slow`"]
