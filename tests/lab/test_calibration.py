"""The calibration benchmark: what it writes, and that it goes on from its file of rows."""

import importlib
import json
import sys

import pandas as pd
import pytest


@pytest.fixture
def calibration():
    return importlib.import_module("lab.calibration")


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


def test_hidden_mechanisms_are_counted_by_mode_and_the_class_of_a_gate_has_to_be_named(calibration):
    gate = "hidden, gate, on 7% where position 0 is 'd' and position 2 is 'c'"
    inside = [
        {"reason": "values patched; where position 2 is 'c' and position 0 is 'd' (6% of the answers): 0.10"}
    ]
    half = [{"reason": "values patched; where position 2 is 'c' (24% of the answers): 0.10"}]
    rows = [
        {**row("any", "hidden, 0.1% of the logits", False, "implements"), "claims": "[]"},
        {**row("any", "hidden, 90.0% of the logits", True, "implements"), "claims": "[]"},
        {**row("any", gate, False, "partly"), "claims": json.dumps([*half, *inside])},
        {**row("any", gate, False, "partly"), "claims": json.dumps(half)},
        {**row("any", "hidden, gate, on 2% where position 0 is 'd'", None, "implements"), "claims": "[]"},
    ]
    text = calibration.hidden_tables(pd.DataFrame(rows), {}, "quick", 0)
    assert "1 same, 3 different" in text
    assert "Of the 2 models with a gate, 1 have its class" in text
    assert "| gate | different | 0 | 2 |" in text
    assert "### Not right: 1\n" in text


@pytest.mark.slow
def test_a_later_run_measures_only_what_is_missing(calibration, tmp_path, monkeypatch, capsys):
    command = ["calibration.py", "--only", "shift", "--results", str(tmp_path), "--config", "quick"]
    monkeypatch.setattr(sys, "argv", [*command, "--kinds", "itself", "untrained"])
    calibration.main()
    (kept,) = tmp_path.glob("*.json")
    written = kept.stat().st_mtime_ns
    rows = json.loads(kept.read_text())["rows"]
    assert [row["model"] for row in rows] == ["itself", "alternative, itself", "untrained"] * 2
    calibration.main()
    assert kept.stat().st_mtime_ns == written
    assert "6 pairs of 1 circuits" in capsys.readouterr().out


def test_what_could_not_be_made_and_jobs_that_failed_are_left_out_with_their_reason(calibration):
    rows = [
        {"circuit": "copy", "circuit_name": "copy", "source": "exact", "why": None, "error": None},
        {"circuit": "share", "circuit_name": "share", "source": "trained", "why": "not faithful", "error": None},
        {"circuit": None, "circuit_name": "7", "source": "random", "why": None, "error": "KeyError: 1"},
    ]
    assert calibration.left_out(pd.DataFrame(rows)) == {
        "share, trained": "not faithful",
        "7, random": "KeyError: 1",
    }
    assert calibration.left_out(pd.DataFrame(rows).drop(columns="why")) == {"7, random": "KeyError: 1"}


def test_an_unknown_circuit_is_refused(calibration, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["calibration.py", "--only", "nothing"])
    with pytest.raises(SystemExit, match=r"no circuit nothing"):
        calibration.main()
