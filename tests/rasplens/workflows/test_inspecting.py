"""What files and folders hold, said before anything else is asked of them."""

import json

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

from rasplens.compile import compile_program, programs
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task


@pytest.fixture
def files(folder):
    """A model of every kind that commands read."""
    logging.disable_progress_bar()
    model = load_pretrained("sort")
    model.save(folder / "trained.safetensors")
    state = {name: torch.tensor(array) for name, array in model.transformer.weights.items()}
    torch.save(state, folder / "legacy.pt")
    compile_program(programs.reverse(), "abc", 4).save(folder / "compiled.safetensors")
    ids = {"bos_token_id": None, "eos_token_id": None}
    torch.manual_seed(0)
    small = GPT2LMHeadModel(GPT2Config(vocab_size=12, n_positions=16, n_embd=16, n_layer=1, n_head=2, **ids))
    small.save_pretrained(folder / "language")
    return folder


@pytest.mark.parametrize(
    ("file", "kind", "d_model"),
    [
        ("trained.safetensors", "a trained model, in RASPLens's format", 128),
        ("legacy.pt", "a state dict of TransformerLens", 128),
        ("compiled.safetensors", "a compiled program, in RASPLens's format", None),
        ("language", "a Hugging Face language model", 16),
    ],
)
def test_it_says_what_a_file_holds_and_which_task_fits(cli, files, file, kind, d_model):
    code, text, _ = cli("inspect", file, "--json")
    assert code == 0
    found = json.loads(text)
    assert found["kind"] == kind
    assert d_model in (None, found["config"]["d_model"])
    fits = {fit["task"]: fit["right"] for fit in found["tasks"]}
    if "compiled" not in file and file != "language":
        assert fits["sort"] > 0.99
    assert fits["copy"] is None
    assert all(bool(fit["why"]) == (fit["right"] is None) for fit in found["tasks"])
    code, text, _ = cli("inspect", file)
    assert code == 0
    assert kind in " ".join(text.split())


@pytest.mark.slow
def test_what_a_state_dict_leaves_open_is_said_and_may_be_declared(cli, files):
    _, text, _ = cli("inspect", "legacy.pt", "--json")
    open_ = {name: value for name, value in json.loads(text)["config"].items() if " or " in str(value)}
    assert open_ == {
        "positions": "standard or shortformer",
        "normalization": "none or LNPre",
        "attn_scale": "11.31 or 1",
    }
    _, text, _ = cli("inspect", "legacy.pt", "--positions", "shortformer", "--json")
    found = json.loads(text)
    assert found["config"]["positions"] == "shortformer"
    assert next(fit["right"] for fit in found["tasks"] if fit["task"] == "sort") < 0.9
    code, _, errors = cli("inspect", "legacy.pt", "--activation", "gelu")
    assert code == 2
    assert "activation 'gelu'" in errors


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_wrong_reading_is_told(cli, files):
    code, _, errors = cli(
        "run", "sort", "--learned", "legacy.pt", "--positions", "shortformer", "--expect", "0.9", "--quiet"
    )
    assert code == 2
    assert "most common answer" in errors
    assert "--expect asks for 0.9" in errors


def test_a_larger_vocabulary_needs_a_map_beside_the_model(cli, files):
    task = get_task("sort")
    state = torch.load(files / "legacy.pt")
    order = np.random.default_rng(0).permutation(60)[:52]
    for name, axis, ids in (("embed.W_E", 0, order), ("unembed.W_U", 1, order[:50])):
        wide = torch.zeros(60 if axis == 0 else len(state[name]), state[name].shape[1] if axis == 0 else 60)
        if axis == 0:
            wide[ids] = state[name]
        else:
            wide[:, ids] = state[name]
        state[name] = wide
    (files / "wide").mkdir()
    torch.save(state, files / "wide" / "model.pt")
    _, text, _ = cli("inspect", "wide/model.pt", "--json")
    assert json.loads(text)["tasks"][0]["right"] is None
    tokens = {str(token): int(i) for token, i in zip(task.vocab, order, strict=True)}
    (files / "wide" / "tokens.json").write_text(json.dumps(tokens))
    _, text, _ = cli("inspect", "wide/model.pt", "--json")
    assert json.loads(text)["tasks"][0]["right"] > 0.99


@pytest.mark.slow
def test_a_task_of_ones_own_is_tried(cli, files):
    (files / "mine.py").write_text("from rasplens.tasks import get_task\ntask = get_task('sort')")
    code, text, _ = cli("inspect", "legacy.pt", "--task", "mine.py:task", "--json")
    assert code == 0
    assert [fit["right"] for fit in json.loads(text)["tasks"] if fit["task"] == "sort"] == pytest.approx(
        [0.998] * 2, abs=0.01
    )


@pytest.mark.parametrize("path", ["none.pt", ".", "text.txt"])
def test_what_holds_no_model(cli, files, path):
    (files / "text.txt").write_text("no model")
    code, _, errors = cli("inspect", path)
    assert (code, errors.count("\n")) == (2, 1)


@pytest.mark.slow
def test_a_model_that_is_right_less_often_than_expected_stops_the_command(cli, files):
    given = ("run", "sort", "--learned", "legacy.pt", "--config", "quick")
    code, _, errors = cli(*given, "--expect", "1")
    assert code == 2
    assert "--expect asks for 1" in errors
    assert not (files / "runs" / "sort" / "report.html").exists()
    code, _, errors = cli(*given, "--expect", "0.99")
    assert code == 0
    assert "of the answers of 'sort' right, 0.998 " in errors


@pytest.mark.slow
def test_a_language_model_is_compared_by_its_own_tokens(cli, files):
    task = get_task("induction")
    (files / "language" / "tokens.json").write_text(json.dumps({token: i for i, token in enumerate(task.vocab)}))
    code, text, errors = cli("run", "induction", "--learned", "language", "--config", "quick", "--json")
    assert code == 0
    assert json.loads(text)["verdict"]["answer"] == "does not"
    (files / "language" / "tokens.json").write_text("[1]")
    code, _, errors = cli("run", "induction", "--learned", "language", "--config", "quick")
    assert (code, errors.count("\n")) == (2, 1)
    assert "tokens to ids" in errors
