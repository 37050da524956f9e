import json

import pytest


def test_methods_are_scored_on_a_program_of_the_library(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text, _ = cli("methods", "histogram", "--max-len", "4", "--method", "exact", "--export", "circuit.json")
    assert code == 0
    assert "4 of" in text
    assert "exact" in text
    assert (tmp_path / "circuit.safetensors").is_file()
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "magic"), "There is no method 'magic'; there are exact, acdc"),
        (("--scores", "nowhere.json", "--method", "random"), "There is no file nowhere.json"),
        (("--export", "nowhere/file.json"), "the folder nowhere does not exist"),
    ],
)
def test_mistakes_have_their_line(cli, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = cli("methods", "histogram", "--max-len", "4", *arguments)
    assert code == 2
    assert message in " ".join(errors.split())
