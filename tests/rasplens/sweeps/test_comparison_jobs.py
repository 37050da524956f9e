"""Comparisons as jobs, from a file."""

import pytest

from rasplens.errors import RaspLensError
from rasplens.sweeps import comparison_job
from rasplens.sweeps.comparison_jobs import read_jobs


def test_lists_stand_for_all_pairs(tmp_path):
    path = tmp_path / "jobs.toml"
    path.write_text(
        '[[jobs]]\ntask = "copy"\nprogram = ["induction", "offset"]\nseed = [0, 1]\n[[jobs]]\ntask = "sort"\n'
    )
    pairs = [(program, seed) for program in ("induction", "offset") for seed in (0, 1)]
    assert read_jobs(path) == [
        *(comparison_job("copy", program, seed=seed) for program, seed in pairs),
        comparison_job("sort"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs = 1", r"tables \[\[jobs\]\].*it has jobs"),
        ("", r"tables \[\[jobs\]\].*it has nothing"),
        ("[[job]]", "it has job"),
        ("[[jobs]", "not valid TOML"),
        ('[[jobs]]\nprogram = "offset"', "needs a task"),
        ('[[jobs]]\ntask = "copy"\nprogramme = "offset"', "no 'programme'.*mean 'program'"),
        ('[[jobs]]\ntask = "copy"\nconfig = "fast"', "config must be one of quick.*'fast'"),
        ("[[jobs]]\ntask = 3", "task must be a text"),
        ('[[jobs]]\ntask = "copy"\nseed = [0, "1"]', "seed must be a whole number"),
        ('[[jobs]]\ntask = "copy"\nseed = true', "seed must be a whole number"),
        ('[[jobs]]\ntask = "copy"\nprogram = []', "program must be a text"),
        (f"jobs = {'[' * 5000}", "nested too deeply|TOML"),
    ],
)
def test_a_file_that_describes_no_comparisons(tmp_path, text, said):
    (tmp_path / "jobs.toml").write_text(text)
    with pytest.raises(RaspLensError, match=said):
        read_jobs(tmp_path / "jobs.toml")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RaspLensError, match="cannot be read"):
        read_jobs(tmp_path / "none.toml")
