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
    assert "after 30 steps. Model: copy.safetensors" in " ".join(text.split())
    assert import_checkpoint(folder / "copy.safetensors", get_task("copy")).origin == ORIGIN
    assert not list(folder.glob("*.training.safetensors"))
    assert len((folder / "copy.training.jsonl").read_text().splitlines()) == 1


@pytest.mark.slow
def test_several_seeds_as_json(cli):
    code, text, _ = cli("train", "copy", "--models", "2", "--seed", "4", "--out", "some.safetensors", "--json")
    assert code == 0
    assert [(model["seed"], model["steps"]) for model in json.loads(text)] == [(4, 30), (5, 30)]
    assert load_learned("some-4.safetensors").origin == ORIGIN
