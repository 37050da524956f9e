"""`rasplens train`, in process, by a recipe of a few steps."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rasplens.learned import RECIPES, SIITRecipe, import_checkpoint, load_learned, recipes
from rasplens.learned.siit.accuracy import ImplementationAccuracy
from rasplens.output_files import Destination
from rasplens.tasks import get_task, task_from_inputs
from rasplens.workflows import train

ORIGIN = "trained by recipe 'fast' with seed 4"


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(
        recipes, "RECIPES", {"copy": {"fast": replace(RECIPES["copy"]["fast"], steps=30, warmup=5)}}
    )


@pytest.mark.slow
def test_it_stores_a_model_that_other_commands_take(cli, folder):
    code, text, _ = cli("train", "copy", "--seed", "4")
    assert code == 0
    assert "30 steps (1L4H, d_model=32, smeared keys). Model: copy.safetensors" in " ".join(text.split())
    assert import_checkpoint(folder / "copy.safetensors", get_task("copy")).origin == ORIGIN
    assert not list(folder.glob("*.training.safetensors"))
    assert len((folder / "copy.training.jsonl").read_text().splitlines()) == 1


def test_the_steps_may_be_given(cli, folder):
    code, text, _ = cli("train", "copy", "--steps", "4")
    assert code == 0
    assert "after 4 steps" in " ".join(text.split())
    assert load_learned(folder / "copy.safetensors").provenance["recipe"]["warmup"] == 2
    recipe, _ = train.siit_recipe(None, 6)
    assert (recipe.steps, recipe.warmup) == (6, 3)
    assert train.siit_recipe(None, 10_000)[0].warmup == SIITRecipe().warmup


@pytest.mark.slow
def test_several_seeds_as_json(cli):
    code, text, _ = cli("train", "copy", "--models", "2", "--seed", "4", "--out", "some.safetensors", "--json")
    assert code == 0
    assert [(model["seed"], model["steps"]) for model in json.loads(text)] == [(4, 30), (5, 30)]
    assert load_learned("some-4.safetensors").origin == ORIGIN


@pytest.mark.slow
def test_a_finished_training_is_shown_and_not_started_again(cli, folder, monkeypatch):
    _, first, _ = cli("train", "copy", "--seed", "4")
    written = (folder / "copy.safetensors").read_bytes()
    monkeypatch.setattr("rasplens.workflows.train.train_many", lambda *given, **more: pytest.fail("it trains"))
    code, text, _ = cli("train", "copy", "--seed", "4")
    assert code == 0
    assert "nothing was trained" in " ".join(text.split())
    assert "nothing was trained" not in " ".join(first.split())
    assert (folder / "copy.safetensors").read_bytes() == written


@pytest.mark.slow
def test_another_model_is_not_overwritten(cli, folder):
    cli("train", "copy", "--seed", "4")
    written = (folder / "copy.safetensors").read_bytes()
    code, _, errors = cli("train", "copy", "--seed", "5")
    assert code == 2
    assert f"copy.safetensors holds another model, {ORIGIN} on copy." in " ".join(errors.split())
    (folder / "other.safetensors").write_bytes(b"something else")
    code, _, errors = cli("train", "copy", "--out", "other.safetensors")
    assert code == 2
    assert "other.safetensors already exists, and is not" in " ".join(errors.split())
    assert (folder / "copy.safetensors").read_bytes() == written


@pytest.mark.parametrize("name", ["words.training.jsonl", "r.toml"])
def test_its_data_and_its_recipe_are_never_written_over(cli, folder, name):
    """The history of a training would have the first one's name."""
    words = [json.dumps({"tokens": [a, b], "answers": [a, b]}) for a in "abcdefgh" for b in "abcdefgh"]
    (folder / "words.training.jsonl").write_text("\n".join(words))
    (folder / "r.toml").write_text(RECIPE)
    before = (folder / name).read_text()
    out = "words.safetensors" if name.startswith("words") else name
    command = "train", "words.training.jsonl", "--recipe", "r.toml", "--out", out
    for force in ([], ["--force"]):
        code, _, errors = cli(*command, *force)
        assert code == 2
        assert re.search(rf"{name} (is|already exists)", errors)
    assert (folder / name).read_text() == before


@pytest.mark.slow
def test_another_model_is_replaced_with_force(cli, folder):
    cli("train", "copy", "--seed", "4")
    assert cli("train", "copy", "--seed", "5", "--force")[0] == 0
    assert load_learned(folder / "copy.safetensors").provenance["seed"] == 5


@pytest.mark.slow
def test_of_several_models_those_that_are_there_are_not_written_again(cli, folder):
    cli("train", "copy", "--seed", "4", "--out", "some-4.safetensors")
    before = (folder / "some-4.safetensors").stat()
    assert cli("train", "copy", "--models", "2", "--seed", "4", "--out", "some.safetensors")[0] == 0
    after = (folder / "some-4.safetensors").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert load_learned(folder / "some-5.safetensors").provenance["seed"] == 5


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


@pytest.mark.slow
def test_a_recipe_may_stand_in_a_file(cli, folder):
    (folder / "mine.toml").write_text(RECIPE)
    code, text, _ = cli("train", "copy", "--recipe", "mine.toml")
    assert code == 0
    assert "10 steps" in text
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


@pytest.mark.slow
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
    assert "other inputs or answers" in " ".join(errors.split())
    code, _, errors = cli("train", "mine.py:histogram")
    assert (code, errors.count("\n")) == (2, 1)
    assert "--vocab" in errors


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


SIZES = "--vocab", "a,b,c", "--max-len", "4"


@pytest.fixture
def few_siit_steps(monkeypatch):
    few = SIITRecipe(steps=3, cycles=1, batch_size=8, warmup=1, pool=40)
    monkeypatch.setattr(train, "SIITRecipe", lambda: few)


@pytest.mark.slow
def test_it_says_what_each_node_computes_and_stores_it(cli, few_siit_steps, own_program, folder):
    code, text, _ = cli("train", "mine.py:histogram", *SIZES, "--siit", "--seed", "3")
    assert code == 0
    assert "histogram (attention" in text
    assert "L0 MLP" in text
    assert "Model: histogram.siit.safetensors" in " ".join(text.split())
    assert not (folder / "histogram.siit.training.safetensors").exists()  # nothing is left to go on with
    stored = load_learned(folder / "histogram.siit.safetensors")
    assert stored.provenance["circuit"]["L0 MLP"] == ["histogram"]
    assert stored.origin == "trained to implement 'histogram' by SIIT with seed 3"
    code, text, _ = cli("train", "mine.py:histogram", *SIZES, "--siit", "--seed", "3")
    assert code == 0
    assert text.rstrip().endswith("nothing was trained.")
    code, _, errors = cli("train", "mine.py:histogram", *SIZES, "--siit", "--seed", "4")
    assert code == 2
    assert "another model, trained to implement 'histogram' by SIIT with seed 3" in " ".join(errors.split())


def test_a_model_without_other_nodes_has_no_word_on_them(capsys):
    """Once, the share that there was not could not be printed."""
    accuracy = ImplementationAccuracy(0.75, {"L0H0": 1.0}, {}, {"L0H0": 1.0}, {"L0H0": 1.0})
    circuit = {"L0H0": SimpleNamespace(variables=("previous",))}
    model = SimpleNamespace(accuracy=accuracy, circuit=circuit, task=SimpleNamespace(name="again"))
    model.provenance = {"steps": 1234}
    train._show_nodes(model, Path("one.safetensors"))
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"0\.7500 .* Model: one\.safetensors .*circuit is not known", said)
    assert "behaviour is 0.7500, 0.995 is needed (it took 1,234 steps; --steps" in said
    enough = ImplementationAccuracy(1.0, {"L0H0": 1.0}, {}, {"L0H0": 1.0}, {"L0H0": 1.0})
    train._show_nodes(SimpleNamespace(**{**vars(model), "accuracy": enough}), Path("one.safetensors"))
    assert capsys.readouterr().out.rstrip().endswith("Model: one.safetensors")
    assert "L0H0 previous 1.000 1.000 1.000" in said


def test_nodes_of_which_nothing_was_measured_are_not_tested(capsys):
    nothing = float("nan")
    changed = {"L0H0": 1.0, "L0 MLP": nothing}
    accuracy = ImplementationAccuracy(1.0, {"L0H0": 1.0, "L0 MLP": 1.0}, {}, changed, changed)
    circuit = {node: SimpleNamespace(variables=(name,)) for node, name in (("L0H0", "before"), ("L0 MLP", "two"))}
    model = SimpleNamespace(accuracy=accuracy, circuit=circuit, task=SimpleNamespace(name="again"))
    train._show_nodes(model, Path("one.safetensors"))
    said = " ".join(capsys.readouterr().out.split())
    assert "L0 MLP two 1.000 not tested not tested" in said
    assert "1 of 2 nodes are not tested" in said


@pytest.mark.slow
def test_siit_takes_recipe_and_shape_from_a_file(cli, own_program, folder):
    shape = "n_layers = 2\nn_heads = 4\nd_model = 24\nd_head = 16\nactivation = 'gelu'\nd_mlp = 32\nbias = true\n"
    few = "steps = 3\ncycles = 1\nwarmup = 1\nbatch_size = 8\npool = 40\n"
    (folder / "brief.toml").write_text(f"{few}[architecture]\n{shape}")
    code, _, errors = cli("train", "mine.py:histogram", *SIZES, "--siit", "--recipe", "brief.toml")
    assert code == 0, errors
    assert load_learned(folder / "histogram.siit.safetensors").transformer.config.d_model == 24


@pytest.mark.slow
def test_json_has_its_circuit_and_its_accuracies(cli, few_siit_steps, own_program):
    code, text, _ = cli("train", "mine.py:histogram", *SIZES, "--siit", "--json", "--out", "one.safetensors")
    assert code == 0
    found = json.loads(text)
    assert (found["task"], found["path"]) == ("histogram", "one.safetensors")
    assert set(found["implementation"]) == {"behaviour", "interchange", "strict", "changed", "within"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--recipe", "fast"], "SIITRecipe's fields; got 'fast'"),
        (["--recipe", "no.toml"], "no.toml cannot be read"),
        (["--models", "2"], "omit --models"),
        (
            ["--out", "there.safetensors"],
            "there.safetensors already exists, and is not",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(cli, own_program, folder, options, message):
    (folder / "there.safetensors").write_bytes(b"a model")
    code, _, errors = cli("train", "mine.py:histogram", *SIZES, "--siit", *options)
    assert code == 2
    assert message in " ".join(errors.split())
    assert (folder / "there.safetensors").read_bytes() == b"a model"


def test_a_task_without_a_program_is_refused(folder):
    words = [(a, b) for a in "abcd" for b in "abcd"]
    task = task_from_inputs("words", words, [list(word) for word in words])
    with pytest.raises(ValueError, match="'words' has no program"):
        train.implement_and_show(
            task, train.siit_recipe(None), 0, Destination(folder / "x.safetensors"), json=False
        )
