"""`rasplens train`, in process, by a recipe of a few steps."""

import json
from dataclasses import replace

import pytest

from rasplens.learned import RECIPES, import_checkpoint, load_learned, recipes
from rasplens.tasks import get_task

ORIGIN = "trained by recipe 'fast' with seed 4"


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(
        recipes, "RECIPES", {"copy": {"fast": replace(RECIPES["copy"]["fast"], steps=30, warmup=5)}}
    )


def test_it_stores_a_model_that_other_commands_take(cli, folder):
    code, text, _ = cli("train", "copy", "--seed", "4")
    assert code == 0
    assert "after 30 steps (1L4H, d_model=32, smeared keys). Model: copy.safetensors" in " ".join(text.split())
    assert import_checkpoint(folder / "copy.safetensors", get_task("copy")).origin == ORIGIN
    assert not list(folder.glob("*.training.safetensors"))
    assert len((folder / "copy.training.jsonl").read_text().splitlines()) == 1


@pytest.mark.slow
def test_several_seeds_as_json(cli):
    code, text, _ = cli("train", "copy", "--models", "2", "--seed", "4", "--out", "some.safetensors", "--json")
    assert code == 0
    assert [(model["seed"], model["steps"]) for model in json.loads(text)] == [(4, 30), (5, 30)]
    assert load_learned("some-4.safetensors").origin == ORIGIN


def test_a_finished_training_is_shown_and_not_started_again(cli, folder, monkeypatch):
    _, first, _ = cli("train", "copy", "--seed", "4")
    written = (folder / "copy.safetensors").read_bytes()
    monkeypatch.setattr("rasplens.workflows.train.train_many", lambda *given, **more: pytest.fail("it trains"))
    code, text, _ = cli("train", "copy", "--seed", "4")
    assert code == 0
    assert "which was there already: nothing was trained." in " ".join(text.split())
    assert "which was there already" not in " ".join(first.split())
    assert (folder / "copy.safetensors").read_bytes() == written


def test_another_model_is_not_overwritten(cli, folder):
    cli("train", "copy", "--seed", "4")
    written = (folder / "copy.safetensors").read_bytes()
    code, _, errors = cli("train", "copy", "--seed", "5")
    assert code == 2
    assert f"copy.safetensors holds another model, {ORIGIN} on copy. Give another" in " ".join(errors.split())
    (folder / "other.safetensors").write_bytes(b"something else")
    code, _, errors = cli("train", "copy", "--out", "other.safetensors")
    assert code == 2
    assert "other.safetensors is there already, and no such model" in " ".join(errors.split())
    assert (folder / "copy.safetensors").read_bytes() == written


RECIPE = """
batch_size = 32
steps = 10
learning_rate = 0.01
weight_decay = 0.01

[architecture]
n_layers = 1
n_heads = 2
d_model = 8
d_head = 4
"""


def test_a_recipe_may_stand_in_a_file(cli, folder):
    (folder / "mine.toml").write_text(RECIPE)
    code, text, _ = cli("train", "copy", "--recipe", "mine.toml")
    assert code == 0
    assert "after 10 steps" in text
    model = load_learned(folder / "copy.safetensors")
    assert model.provenance["recipe"]["architecture"]["d_model"] == 8
    code, text, _ = cli("train", "copy", "--recipe", "mine.toml")
    assert "nothing was trained" in " ".join(text.split())
    code, _, errors = cli("train", "copy", "--recipe", "other.toml")
    assert (code, errors.count("\n")) == (2, 1)
    assert "other.toml cannot be read" in errors


@pytest.fixture
def short_general(monkeypatch):
    short = {name: replace(recipe, steps=20, warmup=5) for name, recipe in recipes.GENERAL.items()}
    monkeypatch.setattr(recipes, "GENERAL", short)


def test_a_program_of_ones_own_is_trained_on_its_own_answers(cli, folder, own_program, short_general):
    given = ("train", "mine.py:histogram", "--vocab", "a..d", "--max-len", "5", "--out", "own.safetensors")
    code, text, _ = cli(*given)
    assert code == 0
    assert "MLPs of 256" in text  # after so few steps attention alone has not learned it
    assert load_learned(folder / "own.safetensors").task == "histogram"
    code, text, _ = cli(*given)
    assert "nothing was trained" in " ".join(text.split())
    code, text, _ = cli(*given, "--recipe", "fast")
    assert code == 2
    code, _, errors = cli(*given[:2], "--vocab", "a..d", "--max-len", "6", "--out", "own.safetensors")
    assert code == 2
    assert "with other inputs or answers" in " ".join(errors.split())
    code, _, errors = cli("train", "mine.py:histogram")
    assert (code, errors.count("\n")) == (2, 1)
    assert "say --vocab" in errors


@pytest.mark.slow
def test_run_trains_where_there_is_no_model(cli, folder, own_program, short_general):
    given = ("run", "mine.py:histogram", "--vocab", "a..c", "--max-len", "5", "--config", "quick", "--json")
    code, text, _ = cli(*given)
    assert code == 0
    found = json.loads(text)
    assert (found["task"], found["program"]) == ("histogram", "histogram")
    assert (folder / "runs" / "histogram" / "model.safetensors").exists()
    assert (folder / "runs" / "histogram" / "report.html").exists()


@pytest.mark.slow
def test_run_takes_alternatives_from_files(cli, folder):
    (folder / "own.rasp").write_text('back = shift(tokens, 4, "A");')
    given = ("run", "copy", "--program", "offset", "--program", "own.rasp", "--config", "quick", "--json")
    code, text, _ = cli(*given)
    assert code == 0
    found = json.loads(text)
    assert found["program"] == "offset"
    assert [one["program"] for one in found["alternatives"]] == ["back"]
    assert (folder / "runs" / "copy" / "report-back.html").exists()
