"""Imports, with state dicts as legacy TransformerLens wrote them: weights, zero biases and two buffers."""

import numpy as np
import pytest
import torch

from rasplens.learned import Architecture, LearnedModel, import_checkpoint, untrained
from rasplens.model import StorageError
from rasplens.tasks import get_task


@pytest.fixture(scope="module")
def task():
    return get_task("compression", n_digits=6)


@pytest.fixture(scope="module")
def transformer(task):
    return untrained(Architecture(2, 1, 8, 8, identity_v=True, identity_o=True), task, 0)


@pytest.fixture
def legacy(transformer) -> dict[str, torch.Tensor]:
    state = {name: torch.tensor(array) for name, array in transformer.weights.items()}
    for layer in range(2):
        for letter in "QKV":
            state[f"blocks.{layer}.attn.b_{letter}"] = torch.zeros(1, 8)
        state[f"blocks.{layer}.attn.b_O"] = torch.zeros(8)
        state[f"blocks.{layer}.attn.mask"] = torch.tril(torch.ones(5, 5)).bool()
        state[f"blocks.{layer}.attn.IGNORE"] = torch.tensor(-torch.inf)
    state["unembed.b_U"] = torch.zeros(8)
    return state


def written(tmp_path, state):
    path = tmp_path / "model.pt"
    torch.save(state, path)
    return path


def test_a_legacy_state_dict_becomes_the_same_model_under_the_tasks_mask(task, transformer, legacy, tmp_path):
    model = import_checkpoint(written(tmp_path, legacy), task)
    config = model.transformer.config
    assert (config.n_layers, config.n_heads, config.d_model, config.d_head) == (2, 1, 8, 8)
    assert config.frozen
    np.testing.assert_array_equal(model.transformer.mask, task.mask(2))
    np.testing.assert_allclose(model.transformer(task.held_out), transformer(task.held_out), atol=1e-6)
    assert model.origin == "imported from model.pt"


def test_free_value_and_output_matrices_are_recognised(task, legacy, tmp_path):
    legacy["blocks.1.attn.W_V"] = 2 * legacy["blocks.1.attn.W_V"]
    config = import_checkpoint(written(tmp_path, legacy), task).transformer.config
    assert (config.identity_v, config.identity_o) == (False, True)


def test_our_own_files_are_read_too(task, transformer, tmp_path):
    path = tmp_path / "mine.safetensors"
    LearnedModel(transformer, task.name, {"origin": "made up"}).save(path)
    assert import_checkpoint(path, task).origin == "made up"
    with pytest.raises(ValueError, match="learned the task 'compression', not 'sort'"):
        import_checkpoint(path, get_task("sort"))


def test_a_shape_that_does_not_fit_the_task_says_what_differs(legacy, tmp_path):
    path = written(tmp_path, legacy)
    with pytest.raises(ValueError, match="does not fit the task 'sort'") as caught:
        import_checkpoint(path, get_task("sort"))
    assert "8 tokens (d_vocab) where it needs 52" in str(caught.value)
    assert "8 logits (d_vocab_out) where it needs 50" in str(caught.value)
    assert "5 positions (n_ctx) where it needs 22" in str(caught.value)


def test_parts_without_a_model_for_them_are_named(task, legacy, tmp_path):
    legacy["blocks.0.ln1.w"] = torch.ones(8)
    with pytest.raises(ValueError, match=r"has parts that RASPLens has no model for: blocks\.0\.ln1\.w"):
        import_checkpoint(written(tmp_path, legacy), task)


def test_missing_parts_are_named(task, legacy, tmp_path):
    del legacy["unembed.W_U"]
    with pytest.raises(ValueError, match=r"no state dict of a HookedTransformer: 'unembed\.W_U' is missing"):
        import_checkpoint(written(tmp_path, legacy), task)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "neither a RASPLens model nor a state dict"),
        (b"hello, I am no model", "neither a RASPLens model nor a state dict"),
        (b"PK\x03\x04 cut off", "neither a RASPLens model nor a state dict"),
        (b"\x10\x00\x00\x00\x00\x00\x00\x00{", "truncated or no safetensors file"),
    ],
)
def test_foreign_and_damaged_files_are_refused(task, tmp_path, content, message):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=message):
        import_checkpoint(path, task)


def test_a_truncated_checkpoint_is_refused(task, legacy, tmp_path):
    path = written(tmp_path, legacy)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StorageError, match="neither a RASPLens model nor a state dict"):
        import_checkpoint(path, task)


def test_pickled_code_is_never_run(task, tmp_path):
    class Trap:
        def __reduce__(self):
            return (exec, ("raise SystemExit('code from a checkpoint was run')",))

    with pytest.raises(StorageError, match="that torch can load safely"):
        import_checkpoint(written(tmp_path, {"embed.W_E": Trap()}), task)


def test_what_is_no_mapping_of_tensors_is_refused(task, tmp_path):
    for content in ([torch.zeros(2)], {"a": 3}):
        with pytest.raises(StorageError, match="holds no state dict"):
            import_checkpoint(written(tmp_path, content), task)


def test_a_missing_file_is_named(task, tmp_path):
    with pytest.raises(StorageError, match="There is no file"):
        import_checkpoint(tmp_path / "nowhere.pt", task)
