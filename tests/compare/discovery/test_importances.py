import json
from dataclasses import replace

import pytest

from rasplens.compare.discovery.importances import read_importances, write_importances
from rasplens.errors import RaspLensError
from rasplens.model import Config

CONFIG = Config(n_layers=2, n_heads=2, d_model=4, d_head=2, n_ctx=3, d_vocab=2, d_vocab_out=2, d_mlp=4)


def test_a_circuit_comes_back(tmp_path):
    path = tmp_path / "importances.json"
    write_importances(path, CONFIG, ["embed->L0H1.q", "L0H1->L0 MLP", "L0 MLP->L1H0.v", "L1H0->logits"])
    found = json.loads(path.read_text())
    assert {name for name, edge in found["edges"].items() if edge["in_graph"]} == {
        "input->a0.h1<q>", "a0.h1->m0", "m0->a1.h0<v>", "a1.h0->logits",
    }  # fmt: skip
    assert found["nodes"]["m0"] == {"in_graph": True}
    assert found["nodes"]["m1"] == {"in_graph": False}
    assert found["cfg"]["n_heads"] == 2
    scores = read_importances(path, CONFIG)
    assert scores["L0H1->L0 MLP"] == 1.0
    assert scores["embed->L0H1.q"] == scores["pos_embed->L0H1.q"] == 1.0
    assert scores["L0H0->logits"] == 0.0


def test_of_the_two_embeddings_the_larger_score_is_written(tmp_path):
    path = tmp_path / "importances.json"
    write_importances(path, CONFIG, [], {"embed->logits": -3.0, "pos_embed->logits": 2.0})
    assert read_importances(path, CONFIG)["embed->logits"] == -3.0


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "importances.json"
    with pytest.raises(RaspLensError, match=r"no file .*importances\.json"):
        read_importances(path, CONFIG)
    deep = "[" * 100_000
    for text in ("{", "[]", deep, '{"edges": {"a": {}}}', '{"edges": {"a": {"score": "x"}}}'):
        path.write_text(text)
        with pytest.raises(RaspLensError, match=r"importances\.json holds no"):
            read_importances(path, CONFIG)
    path.write_text('{"edges": {"input->a9.h0<q>": {"score": 1}}}')
    with pytest.raises(RaspLensError, match=r"edge 'input->a9.h0<q>'"):
        read_importances(path, CONFIG)
    with pytest.raises(RaspLensError, match="no edge 'nothing'"):
        write_importances(path, CONFIG, ["nothing"])
    for score in ("NaN", "Infinity", "-1e999", '"nan"'):
        path.write_text('{"edges": {"a0.h0->logits": {"score": 1}, "input->a0.h0<q>": {"score": ' + score + "}}}")
        with pytest.raises(RaspLensError, match=r"'input->a0\.h0<q>'.* -?(nan|inf)\b.*finite"):
            read_importances(path, CONFIG)
    with pytest.raises(RaspLensError, match="Is a directory"):
        read_importances(tmp_path, CONFIG)
    path.write_text('{"edges": {}}')
    with pytest.raises(RaspLensError, match="no scores"):
        read_importances(path, CONFIG)


def test_scores_of_a_model_of_another_shape_or_of_other_weights_are_refused(tmp_path):
    path = tmp_path / "importances.json"
    write_importances(path, CONFIG, [], model="a1b2")
    with pytest.raises(RaspLensError, match=r"d_model=4\b.* 6\b"):
        read_importances(path, replace(CONFIG, d_model=6))
    with pytest.raises(RaspLensError, match="other weights"):
        read_importances(path, CONFIG, "c3d4")
    known = read_importances(path, CONFIG)
    assert read_importances(path, CONFIG, "a1b2") == known
    path.write_text('{"edges": {"input->logits": {"score": 1}}}')  # of another tool, which says neither
    assert read_importances(path, CONFIG, "c3d4") == {"embed->logits": 1.0, "pos_embed->logits": 1.0}
