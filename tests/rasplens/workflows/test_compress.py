"""`rasplens compress`, in process."""

import json
from functools import partial

import pytest

from rasplens.learned import TrainConfig, load_compressed
from rasplens.learned.compressor import CompressionRecipe, compress_many
from rasplens.learned.compressor.recipe import RECIPES
from rasplens.learned.training import loop
from rasplens.sources import Sizes, compile_source
from rasplens.workflows import compress


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setitem(RECIPES, "fast", CompressionRecipe(60, 32, 1e-2, 1e-3))


@pytest.mark.slow
def test_it_writes_the_model_and_shows_what_it_kept(cli, folder):
    code, text, _ = cli("compress", "frac_prevs", "--d", "3")
    assert code == 0
    for part in (
        "answers right",
        "principal",
        "Features",
        "is_x",
        "on all 1,364 inputs",
        "compressed.safetensors",
    ):
        assert part in text
    assert load_compressed(folder / "compressed.safetensors").d == 3
    assert not list(folder.glob("*.compression.safetensors"))


@pytest.mark.slow
def test_several_widths_and_seeds_as_json(cli, folder):
    arguments = [
        "length",
        "--vocab",
        "a,b",
        "--max-len",
        "3",
        "--d",
        "2",
        "--d",
        "3",
        "--models",
        "2",
        "--out",
        "x.safetensors",
        "--json",
    ]
    code, text, errors = cli("compress", *arguments)
    assert (code, errors) == (0, "")
    values = json.loads(text)
    assert [(one["d"], one["seed"]) for one in values] == [(2, 0), (2, 1), (3, 0), (3, 1)]
    assert values[0]["model"] == "x_d2_seed0.safetensors"
    assert {"token", "layers", "features", "principal_components", "history"} < set(values[0])
    assert load_compressed(folder / "x_d3_seed1.safetensors").seed == 1


@pytest.mark.slow
def test_without_optimiser_every_variable_keeps_its_directions(cli):
    wide = json.loads(cli("compress", "frac_prevs", "--d", "2", "--plain", "--json")[1])[0]["D"]
    assert wide > compile_source("frac_prevs", None, Sizes(None, None, False)).transformer.config.d_model


@pytest.mark.slow
def test_what_was_interrupted_goes_on(cli, folder, monkeypatch):
    often = partial(compress_many, config=TrainConfig(map_chunk=20, save_every=0.0))
    monkeypatch.setattr(compress, "compress_many", often)
    whole = json.loads(cli("compress", "length", "--d", "3", "--json")[1])[0]
    (folder / "compressed.safetensors").unlink()
    saved, count = loop.save_run, []

    def stop(*arguments):
        saved(*arguments)
        count.append(1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(loop, "save_run", stop)
        code, _, errors = cli("compress", "length", "--d", "3", "--json")
    assert (code, count) == (130, [1])
    assert "Stopped after" in errors
    assert (folder / "compressed.compression.safetensors").exists()
    again = json.loads(cli("compress", "length", "--d", "3", "--json")[1])[0]
    assert again["features"] == whole["features"]
    assert [entry[0] for entry in again["history"]] == [20, 40, 60]
    assert not (folder / "compressed.compression.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frac_prevs", "--d", "0"], "--d"),
        (["frac_prevs", "--d", "99"], "from 1 to 7"),
        (["frac_prevs"], "--d"),
        (["nothing", "--d", "2"], "no program 'nothing'. It is neither a task"),
        (["frac_prevs", "--d", "2", "--recipe", "slow"], "recipe 'slow'"),
        (["frac_prevs", "--d", "2", "--program", "x"], "--program"),
        (["frac_prevs", "--d", "2", "--out", "missing/x.safetensors"], "does not exist"),
        (["frac_prevs", "--d", "2", "--out", "."], "is a folder"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(cli, folder, arguments, message):
    code, text, errors = cli("compress", *arguments)
    assert (code, text) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_nothing_that_is_there_is_written_over(cli, folder):
    (folder / "x_d2_seed0.safetensors").write_text("mine")
    sizes = "length", "--vocab", "a,b", "--max-len", "3"
    code, _, errors = cli("compress", *sizes, "--d", "2", "--d", "3", "--out", "x.safetensors")
    assert code == 2
    assert "x_d2_seed0.safetensors already exists" in errors
    (folder / "x.compression.jsonl").write_text('{"tokens": ["a"]}')
    code, _, errors = cli("compress", *sizes, "--d", "2", "--out", "x.safetensors")
    assert code == 2
    assert "x.compression.jsonl already exists" in errors
    assert (folder / "x_d2_seed0.safetensors").read_text() == "mine"
