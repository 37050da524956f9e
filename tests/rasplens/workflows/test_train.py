"""`rasplens train`, in process, by a recipe of a few steps."""

import json
from dataclasses import replace

from rasplens.learned import RECIPES, import_checkpoint, load_learned, recipes
from rasplens.tasks import get_task


def test_it_stores_models_that_other_commands_take(cli, folder, monkeypatch):
    short = {"fast": replace(RECIPES["copy"]["fast"], steps=30, warmup=5)}
    monkeypatch.setattr(recipes, "RECIPES", {"copy": short})
    code, text, _ = cli("train", "copy", "--seed", "4")
    assert code == 0
    assert "after 30 steps. Model: copy.safetensors" in " ".join(text.split())
    origin = "trained by recipe 'fast' with seed 4"
    assert import_checkpoint(folder / "copy.safetensors", get_task("copy")).origin == origin
    assert not list(folder.glob("*.training.safetensors"))
    assert len((folder / "copy.training.jsonl").read_text().splitlines()) == 1
    code, text, _ = cli("train", "copy", "--models", "2", "--seed", "4", "--out", "some.safetensors", "--json")
    assert [(model["seed"], model["steps"]) for model in json.loads(text)] == [(4, 30), (5, 30)]
    assert load_learned("some-4.safetensors").origin == origin
