"""Where commands write to. What was trained before is found again, anything else is left alone."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rasplens.errors import RaspLensError
from rasplens.learned import LearnedModel, get_recipe, untrained
from rasplens.model import save
from rasplens.output_files import (
    Destination,
    check_state,
    file_name,
    is_own,
    named_files,
    trained_before,
)
from rasplens.tasks import get_task

RECIPE = get_recipe("copy", "fast")
HERE = Destination(Path())


@pytest.fixture
def path(tmp_path):
    """A model of a finished training."""
    transformer = untrained(RECIPE.architecture, get_task("copy"), 3)
    provenance = {"origin": "trained here", "recipe": RECIPE.to_dict(), "seed": 3}
    LearnedModel(transformer, "copy", provenance).save(tmp_path / "copy.safetensors")
    return tmp_path / "copy.safetensors"


def test_where_nothing_is_nothing_was_trained(tmp_path):
    assert trained_before(HERE, tmp_path / "none.safetensors", get_task("copy"), [RECIPE], 3) is None


def test_the_same_training_is_found_again(path):
    assert trained_before(HERE, path, get_task("copy"), [RECIPE], 3).origin == "trained here"


@pytest.mark.parametrize(
    ("task", "recipe", "seed"),
    [("sort", RECIPE, 3), ("copy", get_recipe("copy", "smeared"), 3), ("copy", RECIPE, 4)],
)
def test_another_model_is_named_and_left_alone(path, task, recipe, seed):
    written = path.read_bytes()
    with pytest.raises(ValueError, match="another model, trained here on copy") as caught:
        trained_before(HERE, path, get_task(task), [recipe], seed)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == written


def test_a_file_that_is_no_learned_model_is_left_alone(tmp_path):
    path = tmp_path / "own.safetensors"
    save(untrained(RECIPE.architecture, get_task("copy"), 0), path)
    with pytest.raises(ValueError, match=r"own\.safetensors already exists.*not.*model"):
        trained_before(HERE, path, get_task("copy"), [RECIPE], 0)


def test_a_task_of_that_name_with_other_answers_is_another(path):
    task = get_task("copy")
    other = replace(task, target=lambda ids: (task.target(ids) + 1) % 26)
    assert other.digest != task.digest
    provenance = {"origin": "trained here", "recipe": RECIPE.to_dict(), "seed": 3, "task_digest": task.digest}
    LearnedModel(untrained(RECIPE.architecture, task, 3), "copy", provenance).save(path)
    assert trained_before(HERE, path, task, [RECIPE], 3) is not None
    with pytest.raises(ValueError, match=r"'copy' .*other inputs or answers"):
        trained_before(HERE, path, other, [RECIPE], 3)


def test_with_force_another_model_is_replaced_and_the_same_is_found(path):
    forced = Destination(path, force=True)
    assert trained_before(forced, path, get_task("copy"), [RECIPE], 3).origin == "trained here"
    assert trained_before(forced, path, get_task("copy"), [RECIPE], 4) is None


def test_a_folder_is_no_file_and_the_message_says_what_one_could_be_called(folder):
    with pytest.raises(ValueError, match=r"\. is a folder.* sort\.safetensors"):
        HERE.check_file("sort.safetensors")


def test_a_folder_that_is_not_there_is_named(folder):
    with pytest.raises(ValueError, match=r"a/b/x: .*a/b does not exist"):
        Destination(Path("a/b/x")).check_file("y")


@pytest.mark.parametrize("out", ["x", "sub/x", "sub/../x"])
def test_a_file_may_be_new(folder, out):
    (folder / "sub").mkdir()
    Destination(Path(out)).check_file("y")
    assert [path.name for path in folder.iterdir()] == ["sub"]  # nothing is written


def test_what_is_there_is_replaced_with_force_alone(folder):
    there = folder / "there"
    there.write_text("mine")
    with pytest.raises(ValueError, match=r"there already exists.*--out.*--force"):
        Destination(there).check_file("y")
    Destination(there, force=True).write(there, lambda path: path.write_text("new"))
    assert there.read_text() == "new"


def test_what_appeared_since_the_check_is_not_replaced(folder):
    to = Destination(folder / "late")
    to.check_file("y")
    to.path.write_text("another's")
    with pytest.raises(ValueError, match="late already exists"):
        to.write(to.path, lambda path: path.write_text("new"))
    assert to.path.read_text() == "another's"


def same(folder):
    return folder / "in"


def hard_link(folder):
    (folder / "other").hardlink_to(folder / "in")
    return folder / "other"


def in_a_folder_under_another_name(folder):
    (folder / "sub").symlink_to(folder)
    return folder / "sub" / "in"


@pytest.mark.parametrize("name", [same, hard_link, in_a_folder_under_another_name])
@pytest.mark.parametrize("given", ["in", "."])
def test_an_input_is_never_replaced_under_whatever_name(folder, name, given):
    (folder / "in").write_text("read")
    to = Destination(name(folder), (Path(given),), force=True)
    with pytest.raises(ValueError, match=r"is read by .*--out"):
        to.check_file("y")
    with pytest.raises(ValueError, match="is read by"):
        check_state(replace(to, path=folder), to.path)


def test_what_lies_beside_a_model_and_what_was_imported_are_read_too(folder):
    (folder / "model").touch()
    (folder / "tokens.json").write_text("{}")
    to = Destination(folder / "x", (folder / "model",), force=True)
    with pytest.raises(ValueError, match="is read by"):
        to.check(folder / "tokens.json")
    with pytest.raises(ValueError, match="is read by"):
        to.check(Path(pytest.__file__))


@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_neither_followed_nor_replaced(folder, force):
    (folder / "to").write_text("kept")
    (folder / "link").symlink_to("to")
    (folder / "dangling").symlink_to("nowhere")
    for name in ("link", "dangling"):
        with pytest.raises(ValueError, match=rf"{name} is a link"):
            Destination(folder / name, force=force).check_file("y")


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_regular_file_is_not_replaced(folder, force):
    os.mkfifo(folder / "fifo")
    for path in (folder / "fifo", Path(os.devnull)):
        with pytest.raises(ValueError, match=rf"{path} .*regular file"):
            Destination(path, force=force).check_file("y")
        with pytest.raises(ValueError, match=rf"{path} .*regular file"):
            trained_before(Destination(path, force=force), path, get_task("copy"), [RECIPE], 0)


def test_a_folder_that_takes_nothing_is_told_beforehand(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ValueError, match=r"Cannot write x: .*\. is not writable"):
        Destination(Path("x")).check_file("y")


def test_a_file_is_no_folder(folder):
    (folder / "taken").touch()
    with pytest.raises(ValueError, match=r"taken .*no folder.*--out"):
        Destination(folder / "taken").make_folder()


def test_two_results_have_two_places(folder):
    with pytest.raises(ValueError, match=r"Two results .*\ba\b"):
        HERE.check(folder / "a", folder / ".." / folder.name / "a")


OWN = {
    "report.html": '<!DOCTYPE html>\n<meta name="generator" content="RASPLens">',
    "comparison.json": '{\n "rasplens": "1"}',
    "x.training.jsonl": '{"seed": 0, "step": 100}',
    "empty.jsonl": "",
}
FOREIGN = {
    "report.html": "<p>RASPLens, as I see it",
    "comparison.json": '{"mine": {"rasplens": "1"}}',
    "x.training.jsonl": '{"tokens": ["a"], "answers": ["a"]}',
    "x.safetensors": "",
}


@pytest.mark.parametrize("name", OWN)
def test_reports_comparisons_and_histories_are_refreshed(folder, name):
    path = folder / name
    path.write_text(OWN[name])
    assert is_own(path)
    Destination(folder).check(path, refreshed=True)
    with pytest.raises(ValueError, match=rf"{name} already exists"):
        Destination(path).check_file("y")  # a file that the user names is not


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_of_the_same_names_are_not(folder, name):
    path = folder / name
    path.write_text(FOREIGN[name])
    with pytest.raises(ValueError, match=rf"{name} already exists"):
        Destination(folder).check(path, refreshed=True)


def test_a_history_that_is_none_is_kept(folder):
    (folder / "words.training.jsonl").write_text(FOREIGN["x.training.jsonl"])
    with pytest.raises(ValueError, match=r"words\.training\.jsonl already exists"):
        check_state(Destination(folder / "words"), folder / "words.training.safetensors")


def test_the_files_that_options_name(folder):
    for name in ("a.py", "b.rasp", "model", "sort"):
        (folder / name).touch()
    values = ["a.py:program", ["b.rasp", "c.rasp"], Path("model"), Path("no"), "sort", 3, None]
    assert named_files(values) == (Path("a.py"), Path("b.rasp"), Path("model"))


@pytest.mark.parametrize(
    ("name", "file"), [("sort", "sort"), ("../../etc/x", "_.._etc_x"), ("..", "_"), ("a/b", "a_b")]
)
def test_the_name_of_a_task_leads_into_no_other_folder(name, file):
    assert file_name(name) == file


@pytest.mark.parametrize("out", ["precious", "precious/deep", "precious/deep/deeper"])
def test_no_folder_is_made_in_a_file(folder, out):
    (folder / "precious").write_text("mine")
    with pytest.raises(RaspLensError, match=r"precious .*no folder.*--out"):
        Destination(Path(out)).make_folder()
    with pytest.raises(RaspLensError, match=r"no folder|does not exist"):
        Destination(Path(out) / "file.html").check_file("file.html")


def test_a_folder_is_checked_before_it_is_made(folder):
    to = Destination(Path("new/deep"))
    to.check_folder(Path("new/deep/one.html"))
    assert not list(folder.iterdir())
    to.make_folder()
    assert (folder / "new" / "deep").is_dir()
