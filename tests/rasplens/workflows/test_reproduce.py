"""`rasplens reproduce`, in process, by recipes of a few steps."""

import json
from dataclasses import replace

import pytest

from rasplens.learned import RECIPES, load_pretrained, published_grid, recipes
from rasplens.reproductions import Reproduction


@pytest.mark.slow
def test_reproduce_shows_published_figures_beside_ours(cli, folder, monkeypatch):
    short = {**RECIPES["copy"], "smeared": replace(RECIPES["copy"]["smeared"], steps=30)}
    monkeypatch.setattr(recipes, "RECIPES", {**RECIPES, "copy": short})
    code, text, _ = cli("reproduce", "copy_smeared", "--out", "again")
    assert code == 0
    assert "theirs" in text
    assert "NO" in text  # after thirty steps nothing is completed
    names = sorted(path.name for path in (folder / "again").iterdir())
    assert names == ["copy_smeared.safetensors", "copy_smeared.training.jsonl", "copy_smeared_attention.html"]
    monkeypatch.setattr(Reproduction, "train", lambda *given, **more: pytest.fail("it trains"))
    code, text, _ = cli("reproduce", "copy_smeared", "--out", "again")
    assert code == 0
    assert "nothing was trained" in " ".join(text.split())


def test_the_same_as_json(cli, folder, monkeypatch):
    def trained(entry, state_path, **options):
        state_path.touch()
        return load_pretrained(entry.task)

    monkeypatch.setattr(Reproduction, "train", trained)
    code, text, _ = cli("reproduce", "copy_smeared", "--out", "again", "--json")
    assert code == 0
    values = json.loads(text)
    assert values["name"] == "copy_smeared"
    assert {"measure", "theirs", "ours", "holds"} == set(values["findings"][0])
    assert False not in [finding["holds"] for finding in values["findings"]]


def test_another_model_is_not_overwritten(cli, folder):
    load_pretrained("copy").save(folder / "sort.safetensors")
    written = (folder / "sort.safetensors").read_bytes()
    code, _, errors = cli("reproduce", "sort", "--out", ".")
    assert code == 2
    assert "sort.safetensors holds another model" in " ".join(errors.split())
    assert (folder / "sort.safetensors").read_bytes() == written


@pytest.mark.slow
def test_reproduce_grid_writes_its_table(cli, folder, monkeypatch):
    monkeypatch.setattr(published_grid, "GRID", {"d8": published_grid.GRID["d8"]})
    monkeypatch.setattr(published_grid, "STEPS", 20)
    code, text, _ = cli("reproduce", "grid", "--out", "again", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(text)] == ["d8"]
    assert (folder / "again" / "grid.csv").read_text().startswith("name,layers,d_model,layer_norm,bias,frozen")
