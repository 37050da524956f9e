import re

import numpy as np
import pytest
from markupsafe import escape

from rasplens.learned import Architecture, LearnedModel, load_learned, load_pretrained, untrained
from rasplens.model import StorageError, save
from rasplens.tasks import get_task


@pytest.fixture
def model():
    transformer = untrained(Architecture(1, 1, 4, 4), get_task("copy"), 0)
    return LearnedModel(transformer, "copy", {"origin": "made up", "history": [{"step": 1}]})


def test_a_model_survives_the_round_trip_to_disk(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    back = load_learned(tmp_path / "m.safetensors")
    assert (back.task, back.origin, back.history) == ("copy", "made up", [{"step": 1}])
    np.testing.assert_array_equal(back.transformer.W_E, model.transformer.W_E)


def test_a_file_without_a_task_is_no_learned_model(model, tmp_path):
    save(model.transformer, tmp_path / "m.safetensors")
    with pytest.raises(StorageError, match=r"task.*LearnedModel"):
        load_learned(tmp_path / "m.safetensors")


def test_imported_models_have_no_history(model):
    assert LearnedModel(model.transformer, "copy", {"origin": "imported"}).history == []


def test_the_summary_is_one_line(model):
    assert repr(model).startswith("LearnedModel('copy', made up, Transformer(1 layers")


def test_a_notebook_shows_where_it_comes_from_and_how_its_training_went():
    model = load_pretrained("copy")
    shown = model._repr_html_()
    assert str(escape(model.origin)) in shown
    points = re.search(r'points="([^"]+)"', shown)[1].split()
    assert len(points) == len(model.history) > 2
    last = float(points[-1].split(",")[1])
    assert last == pytest.approx(120 * (1 - model.history[-1]["token"]), abs=0.06)
    without = LearnedModel(model.transformer, "copy", {"origin": "<b>elsewhere</b>"})._repr_html_()
    assert "<svg" not in without
    assert "<b>elsewhere" not in without


@pytest.mark.parametrize("prefix", ["2", [-1], [1.5], [True]])
def test_a_prefix_that_is_no_list_of_ids_is_refused(model, tmp_path, prefix):
    found = LearnedModel(model.transformer, "copy", {"origin": "made up", "prefix": prefix})
    found.save(tmp_path / "model.safetensors")
    with pytest.raises(StorageError, match=rf"prefix.*{re.escape(repr(prefix))}"):
        load_learned(tmp_path / "model.safetensors")
