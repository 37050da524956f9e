"""Comparisons that were made before, shown again from their files."""

import json

import pytest

from rasplens.compare import CompareConfig, compare
from rasplens.compile import programs
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=10, n_fitting=10, questions=20, enumerated=0, head_answers=40, edge_answers=40)


@pytest.fixture(scope="module")
def comparison():
    task = task_from_program(programs.reverse(), "ab", 4)
    return compare("reverse", compile_for(task), task=task, config=FEW)


@pytest.fixture
def runs(folder, comparison):
    """A folder of two runs, of which the second asked about two programs and has no report."""
    for name in ("first", "second"):
        (folder / "runs" / name).mkdir(parents=True)
        comparison.save(folder / "runs" / name / "comparison.json")
    comparison.save(folder / "runs" / "second" / "comparison-other.json")
    (folder / "runs" / "first" / "report.html").write_text("a page")
    return folder / "runs"


@pytest.mark.parametrize("path", ["runs/first", "runs/first/comparison.json"])
def test_a_run_is_shown_as_it_was(cli, runs, comparison, path):
    code, text, errors = cli("show", path)
    assert (code, errors) == (0, "")
    said = " ".join(text.split())
    assert comparison.verdict.answer in said
    for level, answer in comparison.verdict.levels.items():
        assert f"{level} {answer}" in said
    assert "compiled 1.000" in said
    assert "Report: runs/first/report.html." in said
    assert "Claims of the program" not in said
    _, text, _ = cli("show", path, "--verbose")
    assert "Claims of the program" in text


def test_several_are_a_table(cli, runs):
    for arguments in ((), ("runs",), ("runs/first", "runs/second", "runs/first")):
        code, text, _ = cli("show", *arguments)
        assert code == 0
        assert text.startswith("3 comparisons")
        lines = [line.split() for line in text.splitlines() if "implements" in line]
        assert [line[:3] for line in lines] == [
            ["runs/first", "reverse", "reverse"],
            ["runs/second", "reverse", "reverse"],
            ["runs/second/comparison-other.json", "reverse", "reverse"],
        ]
    assert "There is no report" in cli("show", "runs/second/comparison-other.json")[1]


def test_as_json_it_is_all_of_the_file(cli, runs, comparison):
    _, text, _ = cli("show", "runs/first", "--json")
    (found,) = json.loads(text)
    assert found.pop("file") == "runs/first/comparison.json"
    assert found == json.loads(json.dumps(comparison.to_dict()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("nowhere",), "no file or folder nowhere"), (("empty",), "empty holds no comparison.json"), ((), "runs")],
)
def test_what_holds_no_comparison_is_refused(cli, folder, arguments, message):
    (folder / "empty").mkdir()
    code, text, errors = cli("show", *arguments)
    assert (code, text) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1


def test_a_file_that_was_changed_is_refused(cli, runs):
    file = runs / "first" / "comparison.json"
    file.write_text(file.read_text().replace("implements", "does not"))
    code, _, errors = cli("show", "runs/first")
    assert code == 2
    assert "comparison.json" in errors
    code, text, errors = cli("show")  # the others are shown
    assert code == 0
    assert text.startswith("2 comparisons")
    assert errors.startswith("Left out: ")
