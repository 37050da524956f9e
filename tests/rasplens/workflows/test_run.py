"""`rasplens run`, in process, on the smallest task with the quick config: one comparison for many assertions."""

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

from rasplens.cli import main
from rasplens.learned import load_pretrained
from rasplens.output_files import is_own
from rasplens.workflows import run

QUICK = ("--config", "quick", "--inputs", "50")


@pytest.fixture(scope="module")
def copy_run(tmp_path_factory):
    """What `rasplens run copy` prints, and the folder that it writes to."""
    out, text = tmp_path_factory.mktemp("runs") / "copy", StringIO()
    with redirect_stdout(text), pytest.raises(SystemExit) as stop:
        main(["run", "copy", *QUICK, "--out", str(out), "--verbose"])
    assert stop.value.code == 0
    return text.getvalue(), out


def test_it_prints_all_evidence_and_ends_on_the_verdict(copy_run):
    text, out = copy_run
    *_, evidence = text.split("Claims of the program")
    said = evidence[evidence.index("The learned model does not implement the program 'offset'.") :]
    assert [line.split()[0] for line in said.splitlines()[1:4]] == ["answers", "variables", "routes"]
    assert "rasplens explain" in said
    assert said.count("\n") < 14
    for part in ("compiled", "learned", "Residual subspaces", "Attention", "Ablation", "Evidence", "does not"):
        assert part in text
    assert "smallest margin 0.500" in " ".join(text.split())
    assert f"Report: {out}/report.html" in " ".join(text.split())


def test_it_writes_a_page(copy_run):
    page = (copy_run[1] / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")


def test_it_writes_the_figures(copy_run):
    values = json.loads((copy_run[1] / "comparison.json").read_text())
    assert (values["task"], values["program"], values["n_inputs"]) == ("copy", "offset", 50)
    assert values["learned"] == load_pretrained("copy").origin
    assert values["accuracies"]["compiled"] == {"token": 1.0, "sequence": 1.0}


@pytest.mark.slow
def test_another_model_another_program_another_folder_as_json(cli, folder, small_copy):
    arguments = ("--learned", small_copy, "--program", "induction", "--out", "x/y", "--json")
    code, text, errors = cli("run", "copy", *QUICK, *arguments)
    assert (code, errors) == (0, "")
    values = json.loads(text)
    assert values["program"] == "induction"
    assert values["learned"].startswith("'induction', compressed to")
    assert values["verification"]["task inputs"]["ok"] is True
    assert values["report"] == "x/y/report.html"
    assert (folder / "x/y/report.html").is_file()
    assert not {"tables", "models"} & set(values)  # long, and in the file
    kept = json.loads((folder / "x/y/comparison.json").read_text())
    assert kept["tables"]
    assert set(kept["models"]) >= {"compiled", "learned"}


@pytest.mark.release
@pytest.mark.parametrize("task", ["compression", "sort"])
def test_the_other_tasks_at_full_size(cli, folder, task):
    code, text, _ = cli("run", task, "--json")
    assert code == 0
    values = json.loads(text)
    assert values["n_inputs"] == 1_000
    assert values["accuracies"]["compiled"] == {"token": 1.0, "sequence": 1.0}
    assert values["accuracies"]["learned"]["token"] > 0.9
    assert (folder / f"runs/{task}/report.html").is_file()


def test_a_report_that_cannot_be_written_fails_before_the_work(cli, folder):
    (folder / "taken").write_text("a file")
    code, _, errors = cli("run", "copy", "--out", "taken")
    assert code == 2
    assert "taken" in errors
    assert (folder / "taken").read_text() == "a file"


def test_what_it_writes_is_its_own_so_that_it_may_be_run_again(copy_run):
    _, out = copy_run
    assert is_own(out / "comparison.json")
    assert is_own(out / "report.html")


@pytest.mark.parametrize("name", ["report.html", "comparison.json"])
def test_a_foreign_file_in_its_folder_is_kept(cli, folder, monkeypatch, name):
    monkeypatch.setattr(run, "verify_for_task", lambda *given: pytest.fail("the work begins"))
    (folder / "runs/copy").mkdir(parents=True)
    (folder / "runs/copy" / name).write_text("mine")
    code, _, errors = cli("run", "copy", *QUICK)
    assert (code, errors.count("\n")) == (2, 1)
    assert f"runs/copy/{name} already exists" in errors
    assert (folder / "runs/copy" / name).read_text() == "mine"


def test_two_programs_of_one_name_have_one_place_and_are_refused(cli, own_program, folder):
    (folder / "other.py").write_text(own_program.read_text())
    programs = (
        "--program",
        "mine.py:histogram",
        "--program",
        "mine.py:histogram",
        "--program",
        "other.py:histogram",
    )
    code, _, errors = cli("run", "histogram", *programs)
    assert code == 2
    assert "Two results would be written to runs/histogram/comparison-histogram.json" in " ".join(errors.split())


def test_a_program_that_can_never_be_right_is_refused_before_the_comparison(cli, folder, monkeypatch):
    monkeypatch.setattr(run, "verify_for_task", lambda *given: pytest.fail("the work begins"))
    text = "from rasplens.compile.rasp import Map, tokens\nwords = Map(str, tokens).named('words')\n"
    (folder / "mine.py").write_text(text)
    code, _, errors = cli("run", "sort", "--program", "mine.py:words", *QUICK)
    assert code == 2
    assert "'words' has no value" in " ".join(errors.split())
