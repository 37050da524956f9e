"""`rasplens compare`, in process, on a small task with the quick config."""

import json
import re
from shutil import copy

import pytest

from rasplens.errors import RaspLensError
from rasplens.workflows import compare as module
from rasplens.workflows.compare import _stems

QUICK = ("--config", "quick", "--inputs", "50")


@pytest.mark.slow
def test_every_program_of_the_task_is_ranked(cli, folder, small_copy):
    code, text, _ = cli("compare", "copy", "--learned", small_copy, *QUICK, "--out", "reports")
    assert code == 0
    rows = re.findall(r"^own: (\w+) +(implements|partly|does not|cannot tell)", text, flags=re.M)
    assert rows == [("induction", "implements"), ("offset", "does not")]
    assert re.search(r"^own → induction", text, flags=re.M)
    names = sorted(path.name for path in (folder / "reports").iterdir())
    assert names == ["own_induction.html", "own_offset.html"]


@pytest.mark.slow
def test_equal_models_have_equal_rows(cli, folder, small_copy):
    copy(folder / small_copy, folder / "other")
    models = ("--learned", small_copy, "--learned", "other")
    code, text, _ = cli("compare", "copy", *models, "--program", "offset", *QUICK, "--json")
    assert code == 0
    first, second = json.loads(text)
    assert (first.pop("model"), second.pop("model")) == ("own", "other")
    assert first == second


def test_reports_of_models_of_one_name_are_told_apart():
    stems = _stems(["a/model.pt", "b/model.pt", "other.pt", "/x/a/model.pt"])
    assert len(set(stems.values())) == 4
    assert stems["other.pt"] == "other"
    assert stems["b/model.pt"] == "b_model"


def test_a_model_in_the_working_directory_has_its_name(folder):
    assert _stems(["."]) == {".": folder.name}
    assert _stems(["../.."]) == {"../..": folder.parent.parent.name}


def test_no_folder_is_left_where_nothing_is_compared(cli, folder, small_copy, monkeypatch):
    def refused(*_, **__):
        raise RaspLensError("The learned model's logits are NaN.")

    monkeypatch.setattr(module, "rank", refused)
    code, _, errors = cli("compare", "copy", "--learned", small_copy, "--program", "offset", "--out", "reports/a")
    assert code == 2
    assert errors.endswith("rasplens: The learned model's logits are NaN.\n")
    assert [path.name for path in folder.iterdir()] == [small_copy]


def test_models_whose_reports_would_have_one_name_and_foreign_reports_are_refused(cli, folder, small_copy):
    for name in ("a.one", "a.two"):
        copy(folder / small_copy, folder / name)
    programs = "--program", "offset", "--out", "reports"
    code, _, errors = cli("compare", "copy", "--learned", "a.one", "--learned", "a.two", *QUICK, *programs)
    assert code == 2
    assert "Two results would be written to reports/a_offset.html" in " ".join(errors.split())
    (folder / "reports").mkdir()  # it was not made
    (folder / "reports/a_offset.html").write_text("mine")
    code, _, errors = cli("compare", "copy", "--learned", "a.one", *QUICK, *programs)
    assert code == 2
    assert "reports/a_offset.html already exists" in " ".join(errors.split())
