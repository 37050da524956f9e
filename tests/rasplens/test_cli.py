"""The command line, in process: what it prints, what it writes, and how it fails."""

import json
import re

import pytest
import torch

from rasplens import __version__
from rasplens.cli import main
from rasplens.learned import load_learned, load_pretrained
from rasplens.model import StorageError

PROGRAM = """
from rasplens.compile.rasp import Comparison, Select, SelectorWidth, tokens

histogram = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("histogram")
number = 3
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PROGRAM)


@pytest.fixture
def cli(capsys):
    """Runs a command and returns (exit code, standard output, error stream)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    return call


def test_the_version(cli):
    assert cli("--version") == (0, f"rasplens {__version__}\n", "")


def test_help_has_an_example_for_every_command(cli):
    code, overview, _ = cli("--help")
    assert code == 0
    for command in ("run", "compile", "compress", "train", "reproduce", "compare", "verify"):
        assert command in overview
        code, text, _ = cli(command, "--help")
        assert code == 0
        assert f"Example: rasplens {command}" in " ".join(text.split())
        assert "--json" in text


def test_run_writes_a_report_and_prints_a_summary(cli, tmp_path):
    code, text, _ = cli("run", "copy", "--inputs", "100")
    assert code == 0
    for part in ("compiled", "learned", "Residual subspaces", "Attention", "Ablation", "Evidence", "does not"):
        assert part in text
    assert "smallest margin 0.500" in text
    assert "Report: runs/copy/report.html" in text
    page = (tmp_path / "runs/copy/report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    values = json.loads((tmp_path / "runs/copy/comparison.json").read_text())
    assert values["task"] == "copy"
    assert values["n_inputs"] == 100


def test_run_takes_another_program_and_another_folder(cli, tmp_path):
    code, text, _ = cli("run", "copy", "--program", "induction", "--inputs", "60", "--out", "x/y", "--json")
    assert code == 0
    values = json.loads(text)
    assert values["program"] == "induction"
    assert values["verification"]["task inputs"]["ok"] is True
    assert values["report"] == "x/y/report.html"
    assert (tmp_path / "x/y/report.html").is_file()
    assert (tmp_path / "x/y/comparison.json").is_file()


@pytest.mark.parametrize("task", ["compression", pytest.param("sort", marks=pytest.mark.slow)])
def test_run_works_for_the_other_tasks(cli, tmp_path, task):
    code, text, _ = cli("run", task, "--json")
    assert code == 0
    values = json.loads(text)
    assert values["accuracies"]["compiled"] == {"token": 1.0, "sequence": 1.0}
    assert values["accuracies"]["learned"]["token"] > 0.9
    assert (tmp_path / f"runs/{task}/report.html").is_file()


def test_run_takes_a_users_own_checkpoint(cli, tmp_path):
    load_pretrained("copy").save(tmp_path / "own.safetensors")
    code, text, _ = cli("run", "copy", "--learned", "own.safetensors", "--inputs", "60", "--json")
    assert code == 0
    assert json.loads(text)["learned"] == load_pretrained("copy").origin


def test_compile_shows_the_anatomy(cli, tmp_path):
    from rasplens.model import load

    own = "mine.py:histogram", "--vocab", "a,b,c", "--max-len", "5"
    code, text, _ = cli("compile", *own, "--out", "h.safetensors")
    assert code == 0
    assert re.search(r"histogram +categorical +5 +4-8 +L0 neurons 0-8", text)
    assert load(tmp_path / "h.safetensors").config.n_ctx == 6
    code, text, _ = cli("compile", *own, "--input", "b,a,b")
    assert "b,a,b -> 2,1,2" in text
    code, text, _ = cli("compile", "sort", "--json")
    values = json.loads(text)
    assert values["program"] == "successor"
    assert values["bos"] is True
    assert values["variables"][0]["variable"] == "tokens"


def test_verify_says_how_much_was_checked(cli):
    code, text, _ = cli("verify", "mine.py:histogram", "--vocab", "0..2", "--max-len", "4")
    assert code == 0
    assert "equal on all 120 inputs" in text
    code, text, _ = cli("verify", "copy", "--program", "induction", "--samples", "20", "--json")
    values = json.loads(text)
    assert (values["ok"], values["checked"], values["exhaustive"]) == (True, 20, False)


def test_train_stores_a_model_that_run_takes(cli, tmp_path, monkeypatch):
    from dataclasses import replace

    from rasplens.learned import RECIPES, recipes

    short = {"fast": replace(RECIPES["copy"]["fast"], steps=30, warmup=5)}
    monkeypatch.setattr(recipes, "RECIPES", {"copy": short})
    code, text, _ = cli("train", "copy", "--seed", "4")
    assert code == 0
    assert "after 30 steps. Model: copy.safetensors" in " ".join(text.split())
    code, text, _ = cli("run", "copy", "--learned", "copy.safetensors", "--inputs", "60", "--json")
    assert json.loads(text)["learned"] == "trained by recipe 'fast' with seed 4"
    code, text, _ = cli("train", "copy", "--out", "again.safetensors", "--json")
    assert json.loads(text)["steps"] == 30
    assert not list(tmp_path.glob("*.training.safetensors"))
    assert len((tmp_path / "again.training.jsonl").read_text().splitlines()) == 1
    code, text, _ = cli("train", "copy", "--models", "2", "--seed", "4", "--out", "some.safetensors", "--json")
    assert [model["seed"] for model in json.loads(text)] == [4, 5]
    assert load_learned("some-4.safetensors").origin == "trained by recipe 'fast' with seed 4"


def test_the_help_of_train_lists_the_recipes(cli):
    _, text, _ = cli("train", "--help")
    assert "copy smeared: 1L4H, d_model=32, smeared keys" in " ".join(text.split())


def test_compare_makes_one_table_of_all_pairs(cli, tmp_path):
    for name in ("a", "b"):
        load_pretrained("copy").save(tmp_path / f"{name}.safetensors")
    code, text, _ = cli("compare", "copy", "--inputs", "60")
    assert code == 0
    row = r"^shipped: (offset|induction) +(implements|partly|does not|cannot tell)"
    assert len(re.findall(row, text, flags=re.M)) == 2
    assert re.search(r"^shipped → (offset|induction|none of these|partly|cannot tell)", text, flags=re.M)
    code, text, _ = cli(
        "compare", "copy", "--learned", "a.safetensors", "--learned", "b.safetensors",
        "--program", "offset", "--inputs", "60", "--json",
    )  # fmt: skip
    first, second = json.loads(text)
    assert (first.pop("model"), second.pop("model")) == ("a.safetensors", "b.safetensors")
    assert first == second


def test_reproduce_shows_published_figures_beside_ours(cli, tmp_path, monkeypatch):
    from dataclasses import replace

    from rasplens.learned import RECIPES, recipes

    short = {**RECIPES["copy"], "smeared": replace(RECIPES["copy"]["smeared"], steps=30)}
    monkeypatch.setattr(recipes, "RECIPES", {**RECIPES, "copy": short})
    code, text, _ = cli("reproduce", "copy_smeared", "--out", "again")
    assert code == 0
    assert "theirs" in text
    assert "NO" in text  # after thirty steps nothing is completed
    names = sorted(path.name for path in (tmp_path / "again").iterdir())
    assert names == ["copy_smeared.safetensors", "copy_smeared.training.jsonl", "copy_smeared_attention.html"]
    code, text, _ = cli("reproduce", "copy_smeared", "--out", "again", "--json")
    values = json.loads(text)
    assert values["name"] == "copy_smeared"
    assert {"measure", "theirs", "ours", "holds"} == set(values["findings"][0])


def test_reproduce_grid_writes_its_table(cli, tmp_path, monkeypatch):
    from rasplens.learned import published_grid as grid

    monkeypatch.setattr(grid, "GRID", {"d8": grid.GRID["d8"]})
    monkeypatch.setattr(grid, "STEPS", 20)
    code, text, _ = cli("reproduce", "grid", "--out", "again", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(text)] == ["d8"]
    assert (tmp_path / "again" / "grid.csv").read_text().startswith("name,layers,d_model,layer_norm,bias,frozen")


FAULTS = {
    "unknown reproduction": (("reproduce", "sorting"), "no reproduction 'sorting'. There are sort, compression"),
    "unknown task": (("run", "sorting"), "There is no task 'sorting'. There are sort, copy, compression"),
    "missing file": (("run", "sort", "--learned", "no.pt"), "There is no file no.pt"),
    "foreign file": (("run", "sort", "--learned", "mine.py"), "neither a RASPLens model nor a state dict"),
    "unknown program": (("run", "sort", "--program", "bubble"), "has no program 'bubble'. It has successor"),
    "no shipped model": (("run", "compression_notebook"), "No trained model is shipped"),
    "too few inputs": (("run", "copy", "--inputs", "3"), "Invalid value for '--inputs'"),
    "unknown command": (("sort",), "No such command 'sort'"),
    "unknown option": (("run", "sort", "--fast"), "No such option: --fast"),
    "missing argument": (("run",), "Missing argument 'TASK'"),
    "unknown recipe": (("train", "copy", "--recipe", "x"), "has no recipe 'x'. It has fast, seed, smeared"),
    "no folder": (("train", "copy", "--out", "a/b.safetensors"), "the folder a does not exist. Create it"),
    "neither task nor file": (("compile", "hist"), "neither a task (sort, copy, compression"),
    "no vocabulary": (("compile", "mine.py:histogram"), "say --vocab (such as a,b,c or 0..9) and --max-len"),
    "wrong vocabulary": (
        ("verify", "mine.py:histogram", "--vocab", "a,a", "--max-len", "3"),
        "vocab must not repeat a token; 'a' stands there twice",
    ),
    "token outside the vocabulary": (
        ("compile", "mine.py:histogram", "--vocab", "a,b", "--max-len", "3", "--input", "a,z"),
        "Token 'z' at position 1 is not in the vocabulary ('a', 'b')",
    ),
    "sequence too long": (
        ("compile", "mine.py:histogram", "--vocab", "a,b", "--max-len", "3", "--input", "a,b,a,b"),
        "The sequence has 4 tokens; the model takes 1 to max_len=3",
    ),
    "no such program": (
        ("compile", "mine.py:reverse", "--vocab", "a", "--max-len", "3"),
        "mine.py defines no s-op 'reverse'. It defines histogram.",
    ),
    "no s-op": (("compile", "mine.py:number", "--vocab", "a", "--max-len", "3"), "no s-op 'number'"),
    "no such source": (("compile", "other.py:x", "--vocab", "a", "--max-len", "3"), "no file other.py"),
    "weights nowhere": (("compile", "copy", "--out", "a/b.safetensors"), "the folder a does not exist"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mistake_is_one_line_that_says_what_to_do(cli, fault):
    arguments, message = FAULTS[fault]
    code, text, errors = cli(*arguments)
    assert code == 2
    assert text == ""
    assert message in errors
    assert errors.count("\n") == 1
    assert "Traceback" not in errors


def test_a_checkpoint_of_another_shape_says_what_differs(cli, tmp_path):
    weights = load_pretrained("sort").transformer.weights
    torch.save({name: torch.tensor(array) for name, array in weights.items()}, tmp_path / "sort.pt")
    code, _, errors = cli("run", "compression", "--learned", "sort.pt")
    assert code == 2
    assert errors == (
        "rasplens: sort.pt does not fit the task 'compression': it has 52 tokens (d_vocab) where it needs 102, "
        "50 logits (d_vocab_out) where it needs 102, 22 positions (n_ctx) where it needs 5.\n"
    )
    load_pretrained("copy").save(tmp_path / "copy.safetensors")
    code, _, errors = cli("run", "sort", "--learned", "copy.safetensors")
    assert code == 2
    assert "learned the task 'copy', not 'sort'" in errors


def test_a_program_file_that_fails_is_named(cli, tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    code, _, errors = cli("compile", "broken.py:x", "--vocab", "a", "--max-len", "2")
    assert code == 2
    assert "broken.py failed with ZeroDivisionError: division by zero" in errors


def test_a_report_that_cannot_be_written_fails_before_the_work(cli, tmp_path):
    (tmp_path / "taken").write_text("a file")
    code, _, errors = cli("run", "copy", "--out", "taken")
    assert code == 2
    assert "taken" in errors
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_fault_of_our_own_keeps_its_traceback(monkeypatch):
    from rasplens import cli as module

    def broken(*args, **kwargs):
        raise KeyError("ours")

    monkeypatch.setattr(module, "app", broken)
    with pytest.raises(KeyError):
        main(["run", "sort"])


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    from rasplens import cli as module

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "app", interrupted)
    with pytest.raises(SystemExit) as stop:
        main(["run", "sort"])
    assert stop.value.code == 130
    assert "Stopped after" in capsys.readouterr().err


def test_storage_errors_are_what_users_can_mend():
    assert issubclass(StorageError, ValueError)
