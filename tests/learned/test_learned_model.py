import numpy as np
import pytest

from rasplens.learned import Architecture, LearnedModel, load_learned, untrained
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
    with pytest.raises(StorageError, match="does not say which task it learned"):
        load_learned(tmp_path / "m.safetensors")


def test_imported_models_have_no_history(model):
    assert LearnedModel(model.transformer, "copy", {"origin": "imported"}).history == []


def test_the_summary_is_one_line(model):
    assert repr(model).startswith("LearnedModel('copy', made up, Transformer(1 layers")
