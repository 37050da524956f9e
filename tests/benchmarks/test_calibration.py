"""The calibration benchmark: what it writes, and that it goes on from its file of rows."""

import importlib.util
import json
import sys
from pathlib import Path

import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def calibration(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("calibration", BENCHMARKS / "calibration.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "calibration", module)  # its data class looks itself up
    spec.loader.exec_module(module)
    return module


def row(circuit, model, same, verdict, reasons="Why."):
    names = {"source": "exact", "circuit": circuit, "family": "plain", "program": circuit, "model": model}
    return {**names, "same": same, "verdict": verdict, "reasons": reasons}


def test_the_tables_list_what_is_not_right(calibration):
    rows = [
        row("copy", "itself", True, "implements"),
        row("copy", "disguised", True, "partly", "Not quite."),
        row("copy", "untrained", False, "cannot tell", "Too few."),
        row("copy", "alternative, itself", False, "partly"),
        row("share_of_own", "alternative, itself", False, "implements"),
    ]
    text = calibration.tables(pd.DataFrame(rows), {"share, trained": "not faithful"}, "quick", 0)
    assert "5 pairs of 2 circuits: 2 same, 2 different (`quick`, seed 0)" in text
    assert "### Not right: 2\n" in text
    assert "| copy | copy | disguised | same | partly | Not quite. |" in text
    assert "| copy | copy | untrained | different | cannot tell | Too few. |" in text
    assert (
        "| share_of_own | share_of_own | alternative, itself | different | implements | Why. |"
        in (text.partition("### Not told apart")[2])
    )
    assert "| share, trained | not faithful |" in text


def test_a_later_run_measures_only_what_is_missing(calibration, tmp_path, monkeypatch, capsys):
    path, asked = tmp_path / "rows.jsonl", []

    def observe(labelled, seed, config):
        asked.append(labelled.kind)
        return row(labelled.circuit, labelled.kind, labelled.same, "implements") | {"program": labelled.program}

    monkeypatch.setattr(calibration, "observe", observe)
    command = ["calibration.py", "--only", "shift", "--rows", str(path), "--config", "quick"]
    monkeypatch.setattr(sys, "argv", [*command, "--kinds", "itself"])
    calibration.main()
    assert asked == ["itself", "alternative, itself"] * 2
    monkeypatch.setattr(sys, "argv", command)
    calibration.main()
    assert asked.count("itself") == 2
    assert "untrained" in asked
    n = len(asked)
    calibration.main()
    assert len(asked) == n
    *pairs, done = map(json.loads, path.read_text().splitlines())
    assert len(pairs) == n
    assert done["why"] == ""
    capsys.readouterr()


def test_an_unknown_circuit_is_refused(calibration, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["calibration.py", "--only", "nothing"])
    with pytest.raises(SystemExit, match="There is no circuit nothing"):
        calibration.main()
