"""`rasplens sweep`, in process; what does the jobs is tested with sweeps."""

import json

import pandas as pd
import pytest

from rasplens.workflows import sweep


@pytest.fixture
def done(monkeypatch):
    """The jobs and the folder of each sweep, none of which is done."""
    asked = []
    rows = [
        {"task": "copy", "program_name": "offset", "seed": 0, "model": None, "verdict": "does not", "error": None},
        {"task": "copy", "program_name": None, "seed": 1, "model": None, "verdict": None, "error": "It broke."},
    ]

    def instead(jobs, folder, *, processes, progress):
        asked.append((jobs, folder, processes))
        return pd.DataFrame(rows)

    monkeypatch.setattr(sweep, "sweep", instead)
    return asked


def test_the_comparisons_of_a_file_are_one_table(cli, folder, done):
    (folder / "mine.toml").write_text('[[jobs]]\ntask = "copy"\nseed = [0, 1]\n')
    code, text, _ = cli("sweep", "mine.toml", "--processes", "1")
    assert code == 0
    ((jobs, place, processes),) = done
    assert (len(jobs), str(place), processes) == (2, "runs/mine", 1)
    lines = [line.split() for line in text.splitlines()]
    assert ["task", "program", "seed", "verdict", "error"] in lines
    assert ["copy", "offset", "0", "does", "not", "-"] in lines
    assert "It broke." in text
    code, text, _ = cli("sweep", "mine.toml", "--json", "--out", "there")
    assert [row["verdict"] for row in json.loads(text)] == ["does not", None]
    assert str(done[1][1]) == "there"


def test_a_wrong_file_is_one_line(cli, folder, done):
    code, _, errors = cli("sweep", "none.toml")
    assert code == 2
    assert "none.toml cannot be read" in " ".join(errors.split())
    assert not done
