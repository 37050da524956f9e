"""`rasplens compile` and `rasplens verify`, in process, and the check before every comparison."""

import json
import re
from dataclasses import replace

import pytest

from rasplens.compile import CompileError
from rasplens.model import Transformer, load
from rasplens.sources import reference
from rasplens.tasks import get_task
from rasplens.workflows.compile import verify_for_task

OWN = "mine.py:histogram", "--vocab", "a,b,c", "--max-len", "5"


def test_compile_shows_the_anatomy(cli, own_program, folder):
    code, text, _ = cli("compile", *OWN, "--out", "h.safetensors")
    assert code == 0
    assert re.search(r"histogram +categorical +5 +4-8 +L0 neurons 0-8", text)
    assert load(folder / "h.safetensors").config.n_ctx == 6
    code, text, _ = cli("compile", *OWN, "--input", "b,a,b")
    assert "b,a,b -> 2,1,2" in text
    code, text, _ = cli("compile", "sort", "--json")
    values = json.loads(text)
    assert values["program"] == "successor"
    assert values["bos"] is True
    assert values["variables"][0]["variable"] == "tokens"


def test_it_writes_a_stock_checkpoint(cli, own_program, folder):
    code, text, errors = cli("compile", "induction", "--huggingface", "gpt2")
    assert (code, errors) == (0, "")
    assert "GPT-2 for transformers, equal on 2,000 of" in " ".join(text.split())
    assert (folder / "gpt2" / "config.json").is_file()
    code, _, errors = cli("compile", "induction", "--huggingface", "gpt2")
    assert code == 2
    assert "not an empty folder" in " ".join(errors.split())
    code, text, _ = cli("compile", "induction", "--huggingface", "again", "--json")
    assert json.loads(text)["checkpoint"]["inputs"] == 2000
    code, _, errors = cli("compile", *OWN, "--huggingface", "own")
    assert code == 2
    assert "--causal" in errors


@pytest.mark.parametrize("out", ["mine.py", "linked.py", "/dev/null"])
def test_its_own_source_and_devices_are_never_written_over(cli, own_program, folder, out):
    (folder / "linked.py").hardlink_to(own_program)
    before = own_program.read_text()
    for force in ([], ["--force"]):
        code, text, errors = cli("compile", *OWN, "--out", out, *force)
        assert (code, text, errors.count("\n")) == (2, "", 1)
        assert f"{out} is " in errors
    assert own_program.read_text() == before


def test_a_module_that_the_source_imports_is_never_written_over(cli, own_program, folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "imported_by_mine.py").write_text("x = 1\n")
    own_program.write_text("import imported_by_mine\n" + own_program.read_text())
    code, _, errors = cli("compile", *OWN, "--out", "imported_by_mine.py", "--force")
    assert code == 2
    assert "is read by" in errors
    assert (folder / "imported_by_mine.py").read_text() == "x = 1\n"


def test_weights_are_replaced_with_force_alone(cli, own_program, folder):
    (folder / "h.safetensors").write_text("mine")
    code, _, errors = cli("compile", *OWN, "--out", "h.safetensors")
    assert code == 2
    assert "h.safetensors already exists" in errors
    assert (folder / "h.safetensors").read_text() == "mine"
    assert cli("compile", *OWN, "--out", "h.safetensors", "--force")[0] == 0
    assert load(folder / "h.safetensors").config.n_ctx == 6


def test_nothing_is_compared_with_a_reference_that_is_wrong():
    task = get_task("copy", n_letters=3, block=2, length=6)
    compiled = reference(task, None)
    assert all(check.ok for check in verify_for_task(compiled, task).values())
    model = compiled.transformer
    weights = {name: array.copy() for name, array in model.weights.items()}
    weights["unembed.W_U"][:, 0] = weights["unembed.W_U"][:, 1]
    wrong = replace(compiled, transformer=Transformer(model.config, weights, model.mask))
    with pytest.raises(CompileError, match=r"'offset' is WRONG.*\[.*\]"):
        verify_for_task(wrong, task)


def test_verify_says_how_much_was_checked(cli, own_program):
    code, text, _ = cli("verify", "mine.py:histogram", "--vocab", "0..2", "--max-len", "4")
    assert code == 0
    assert "equal on all 120 inputs" in text
    code, text, _ = cli("verify", "copy", "--program", "induction", "--samples", "20", "--json")
    values = json.loads(text)
    assert (values["ok"], values["checked"], values["exhaustive"]) == (True, 20, False)
