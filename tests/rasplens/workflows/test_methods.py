import functools
import json

import numpy as np
import pytest

from rasplens.compare.discovery import Protocol
from rasplens.compile import programs
from rasplens.learned import SIITRecipe, train_to_implement
from rasplens.model import load, load_provenance
from rasplens.tasks import task_from_program
from rasplens.workflows import methods


@pytest.mark.slow
def test_methods_are_scored_on_a_program_of_the_library(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text, _ = cli("methods", "histogram", "--max-len", "4", "--method", "exact", "--export", "circuit.json")
    assert code == 0
    assert "4 of" in text
    assert "exact" in text
    assert load(tmp_path / "circuit.safetensors").config.n_heads == 2
    known = load_provenance(tmp_path / "circuit.safetensors")
    assert known["ids_of_tokens"] == [["a", 0], ["b", 1], ["c", 2]]
    assert known["answered_at"] == [1, 2, 3, 4]
    assert known["example"]["ids"][0] == 3  # a BOS
    again = cli("methods", "histogram", "--method", "exact", "--export", "circuit.json")
    assert again[0] == 2
    assert "circuit.json already exists" in again[2]
    (tmp_path / "circuit.json").rename(tmp_path / "other.json")
    (tmp_path / "other.safetensors").write_text("mine")
    again = cli("methods", "histogram", "--method", "exact", "--export", "other.json", "--scores", "other.json")
    assert again[0] == 2
    again = cli("methods", "histogram", "--method", "exact", "--export", "new.json", "--force")
    assert again[0] == 0
    (tmp_path / "new.json").unlink()
    again = cli("methods", "histogram", "--method", "exact", "--export", "new.json")
    assert again[0] == 2
    assert "new.safetensors already exists" in again[2]
    (tmp_path / "other.json").rename(tmp_path / "circuit.json")
    edges = json.loads((tmp_path / "circuit.json").read_text())["edges"]
    assert edges["a0.h0->m0"] == {"score": 1.0, "in_graph": True}
    command = (
        "methods",
        "histogram",
        "--max-len",
        "4",
        "--method",
        "random",
        "--scores",
        "circuit.json",
        "--json",
    )
    found = json.loads(cli(*command)[1])
    assert {row["method"]: row["auroc"] for row in found["methods"]}["circuit.json"] == 1.0
    assert "L0H0->L0 MLP" in found["truth"]


@pytest.mark.slow
def test_what_is_exported_comes_back_as_the_circuit(cli, tmp_path, monkeypatch):
    """Of a program whose positions matter: in such files they and the tokens are one node."""
    monkeypatch.chdir(tmp_path)
    asked = "methods", "induction", "--method", "exact"
    assert cli(*asked, "--kind", "disguised", "--export", "circuit.json")[0] == 0
    _, text, _ = cli(*asked, "--kind", "disguised", "--scores", "circuit.json")
    assert "one node" in text
    found = json.loads(cli(*asked, "--kind", "disguised", "--scores", "circuit.json", "--json")[1])["methods"]
    assert {(row["auroc"], row["average_precision"]) for row in found} == {(1.0, 1.0)}
    code, _, errors = cli(*asked, "--kind", "disguised", "--scores", "circuit.json", "--seed", "1")
    assert code == 2
    assert "other weights" in " ".join(errors.split())


@pytest.mark.slow
def test_edges_that_a_file_gives_no_score_are_counted_and_a_file_of_few_is_refused(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = "methods", "histogram", "--max-len", "4", "--method", "random"
    assert cli(*asked, "--export", "circuit.json")[0] == 0
    whole = json.loads((tmp_path / "circuit.json").read_text())
    lacking = {name: edge for name, edge in whole["edges"].items() if not name.startswith("a0.h1->")}
    missing = len(whole["edges"]) - len(lacking)
    (tmp_path / "mine.json").write_text(json.dumps({**whole, "edges": lacking}))
    _, text, _ = cli(*asked, "--scores", "mine.json")
    assert f"mine.json gives {missing} of" in " ".join(text.split())
    assert "circuit.json gives" not in " ".join(cli(*asked, "--scores", "circuit.json")[1].split())
    one = dict([next(iter(whole["edges"].items()))])
    (tmp_path / "one.json").write_text(json.dumps({**whole, "edges": one}))
    code, _, errors = cli(*asked, "--scores", "one.json")
    assert code == 2
    assert "of the model's 13 edges" in " ".join(errors.split())


def test_the_exported_circuit_has_the_pairs_that_methods_are_asked_about(cli, tmp_path, monkeypatch):
    """Other tools need them: the model gives each right answer, on the clean input and not on the corrupt one."""
    monkeypatch.chdir(tmp_path)
    assert cli("methods", "histogram", "--max-len", "4", "--method", "random", "--export", "circuit.json")[0] == 0
    pairs, model = json.loads((tmp_path / "circuit.json").read_text())["pairs"], load("circuit.safetensors")
    assert len(pairs) == Protocol().n_pairs
    asked = [(pair, answer) for pair in pairs for answer in pair["answers"]]
    on = {side: model(np.array([pair[side] for pair, _ in asked])) for side in ("clean", "corrupt")}
    rows, places = range(len(asked)), [answer["at"] for _, answer in asked]
    right, wrong = ([answer[of] for _, answer in asked] for of in ("right", "wrong"))
    np.testing.assert_array_equal(on["clean"][rows, places].argmax(-1), right)
    np.testing.assert_array_equal(on["corrupt"][rows, places].argmax(-1), wrong)
    assert 0 < np.mean(np.array(right) != wrong) < 1


def test_several_files_of_scores_are_graded_side_by_side(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = "methods", "histogram", "--max-len", "4", "--method", "random"
    assert cli(*asked, "--export", "circuit.json")[0] == 0
    content = json.loads((tmp_path / "circuit.json").read_text())
    upside_down = {name: {"score": 1 - edge["score"]} for name, edge in content["edges"].items()}
    (tmp_path / "wrong.json").write_text(json.dumps({**content, "edges": upside_down}))
    found = json.loads(cli(*asked, "--scores", "circuit.json", "--scores", "wrong.json", "--json")[1])["methods"]
    assert {one["method"]: one["auroc"] for one in found[:2]} == {"circuit.json": 1.0, "wrong.json": 0.0}
    code, _, errors = cli(*asked, "--scores", "circuit.json", "--scores", "nowhere.json")
    assert code == 2
    assert "no file nowhere.json" in errors


def test_a_program_without_a_circuit_is_told(cli):
    code, _, errors = cli("methods", "length", "--max-len", "3", "--method", "exact")
    assert code == 2
    assert "'length' has no circuit" in " ".join(errors.split())


@pytest.mark.slow
def test_a_program_without_heads_has_no_decoys_and_json_says_null(cli):
    found = json.loads(cli("methods", "nary_map", "--max-len", "3", "--method", "exact", "--json")[1])
    assert found["decoys"] == []
    assert found["methods"][0]["decoys"] is None
    assert found["methods"][0]["auroc"] == 1.0


@pytest.mark.slow
def test_a_stored_model_of_the_program_is_scored_on(cli, tmp_path, monkeypatch):
    task = task_from_program(programs.histogram(), "abc", 4)
    few = SIITRecipe(steps=4, cycles=1, batch_size=8, warmup=1, pool=50)
    path = tmp_path / "model.safetensors"
    train_to_implement("histogram", task, recipe=few).save(path)
    asked = "methods", "histogram", "--max-len", "4", "--model", str(path), "--method", "random"
    code, _, errors = cli(*asked)
    assert code == 2
    assert "does not implement 'histogram'" in " ".join(errors.split())
    any_model = functools.partial(methods.siit_case, marks={})
    monkeypatch.setattr(methods, "siit_case", any_model)
    code, text, _ = cli(*asked)
    assert code == 0
    assert "histogram, siit: " in text
    assert "--kind makes one" in cli(*asked, "--kind", "siit")[2]
    code, _, errors = cli("methods", "reverse", "--model", str(path))
    assert code == 2
    assert "implement 'reverse'" in " ".join(errors.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "magic"), "no method 'magic'. There are exact, acdc"),
        (("--scores", "nowhere.json", "--method", "random"), "no file nowhere.json"),
        (("--export", "nowhere/file.json"), "the folder nowhere does not exist"),
        (("--export", "circuit.safetensors"), "end in .json"),
        (("--kind", "siit", "--scores", "nowhere.json"), "no file nowhere.json"),  # before any training
    ],
)
def test_mistakes_have_their_line(cli, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = cli("methods", "histogram", "--max-len", "4", *arguments)
    assert code == 2
    assert message in " ".join(errors.split())


def test_methods_that_look_for_variables(cli):
    command = ("methods", "detect_pattern", "--variables", "--method", "probe", "--method", "random")
    code, text, _ = cli(*command)
    assert code == 0
    assert "shift_by_1" in text
    assert "interchanged" in text
    found = json.loads(cli(*command, "--json")[1])["variables"]
    assert [row["method"] for row in found] == ["probe", "random"]
    assert found[0]["sites"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("histogram",), "'histogram' has no variable"),
        (("detect_pattern", "--method", "prob"), "'prob'. Did you mean 'probe'? There are probe"),
        (("detect_pattern", "--signed"), "--variables scores no edges"),
        (("detect_pattern", "--ablation", "mean"), "--variables scores no edges"),
    ],
)
def test_variables_that_cannot_be_looked_for(cli, arguments, said):
    code, _, errors = cli("methods", *arguments, "--variables")
    assert code == 2
    assert said in errors
