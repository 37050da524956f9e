"""Where commands write to. What was trained before is found again, anything else is left alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from rasplens.learned import LearnedModel, get_recipe, untrained
from rasplens.model import save
from rasplens.tasks import get_task
from rasplens.workflows.output_files import check_file, trained_before

RECIPE = get_recipe("copy", "fast")


@pytest.fixture
def path(tmp_path):
    """A model of a finished training."""
    transformer = untrained(RECIPE.architecture, get_task("copy"), 3)
    provenance = {"origin": "trained here", "recipe": RECIPE.to_dict(), "seed": 3}
    LearnedModel(transformer, "copy", provenance).save(tmp_path / "copy.safetensors")
    return tmp_path / "copy.safetensors"


def test_where_nothing_is_nothing_was_trained(tmp_path):
    assert trained_before(tmp_path / "none.safetensors", get_task("copy"), [RECIPE], 3) is None


def test_the_same_training_is_found_again(path):
    assert trained_before(path, get_task("copy"), [RECIPE], 3).origin == "trained here"


@pytest.mark.parametrize(
    ("task", "recipe", "seed"),
    [("sort", RECIPE, 3), ("copy", get_recipe("copy", "smeared"), 3), ("copy", RECIPE, 4)],
)
def test_another_model_is_named_and_left_alone(path, task, recipe, seed):
    written = path.read_bytes()
    with pytest.raises(ValueError, match="holds another model, trained here on copy") as caught:
        trained_before(path, get_task(task), [recipe], seed)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == written


def test_a_file_that_is_no_learned_model_is_left_alone(tmp_path):
    path = tmp_path / "own.safetensors"
    save(untrained(RECIPE.architecture, get_task("copy"), 0), path)
    with pytest.raises(ValueError, match="is there already, and no such model"):
        trained_before(path, get_task("copy"), [RECIPE], 0)


def test_a_task_of_that_name_with_other_answers_is_another(path):
    task = get_task("copy")
    other = replace(task, target=lambda ids: (task.target(ids) + 1) % 26)
    assert other.digest != task.digest
    provenance = {"origin": "trained here", "recipe": RECIPE.to_dict(), "seed": 3, "task_digest": task.digest}
    LearnedModel(untrained(RECIPE.architecture, task, 3), "copy", provenance).save(path)
    assert trained_before(path, task, [RECIPE], 3) is not None
    with pytest.raises(ValueError, match="other inputs or answers"):
        trained_before(path, other, [RECIPE], 3)


def test_a_folder_is_no_file_and_the_message_says_what_one_could_be_called(folder):
    with pytest.raises(ValueError, match=r"\. is a folder\. Name a file in it, such as sort\.safetensors"):
        check_file(Path(), "sort.safetensors")


def test_a_folder_that_is_not_there_is_named(folder):
    with pytest.raises(ValueError, match=r"Cannot write a/b/x: the folder a/b does not exist\. Create it first"):
        check_file(Path("a/b/x"), "y")


@pytest.mark.parametrize("out", ["x", "sub/x", "sub/../x", "there"])
def test_a_file_may_be_new_or_written_over(folder, out):
    (folder / "sub").mkdir()
    (folder / "there").write_text("")
    check_file(Path(out), "y")
    assert sorted(path.name for path in folder.iterdir()) == ["sub", "there"]  # nothing is written
