"""Imports, with state dicts as legacy TransformerLens wrote them: weights, zero biases and two buffers."""

import numpy as np
import pytest
import torch

from rasplens.learned import Architecture, LearnedModel, import_checkpoint, untrained
from rasplens.model import StorageError, to_bridge
from rasplens.tasks import get_task

UNTRAINED = pytest.mark.filterwarnings("ignore:.*no better than the commonest answer")
pytestmark = UNTRAINED


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
    legacy["blocks.0.attn.rotary_sin"] = torch.ones(8)
    with pytest.raises(ValueError, match=r"no model for: blocks\.0\.attn\.rotary_sin"):
        import_checkpoint(written(tmp_path, legacy), task)


def test_layer_norm_is_recognised(task, tmp_path):
    model = untrained(Architecture(2, 1, 8, 8, normalization="LN"), task, 0)
    state = {name: torch.tensor(array) for name, array in model.weights.items()}
    state["ln_final.w"] = state["ln_final.w"] * 2
    imported = import_checkpoint(written(tmp_path, state), task).transformer
    assert imported.config.normalization == "LN"
    assert not np.allclose(imported(task.held_out), model(task.held_out))


def test_the_axis_order_of_2022_is_recognised(task, transformer, legacy, tmp_path):
    state = {name: t.transpose(-1, -2) if ".W_" in name else t for name, t in legacy.items()}
    imported = import_checkpoint(written(tmp_path, state), task).transformer
    np.testing.assert_allclose(imported(task.held_out), transformer(task.held_out), atol=1e-6)


@pytest.mark.parametrize("inner", ["", "_original_component."])
@pytest.mark.parametrize("normalization", ["none", "LN"])
def test_the_state_dict_of_a_bridge_is_read(tmp_path, inner, normalization):
    task = get_task("copy", n_letters=5, block=2, length=6)
    model = untrained(Architecture(2, 2, 8, 4, d_mlp=6, normalization=normalization), task, 0)
    bridge = to_bridge(model)
    state = torch.nn.Module.state_dict(bridge) if inner else bridge.state_dict()
    path = written(tmp_path, state)
    imported = import_checkpoint(path, task, n_heads=2).transformer
    assert imported.config == model.config
    np.testing.assert_allclose(imported(task.held_out), model(task.held_out), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"do not say how many heads a layer has\. Give n_heads"):
        import_checkpoint(path, task)
    with pytest.raises(ValueError, match="cannot have 3 heads"):
        import_checkpoint(path, task, n_heads=3)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: {"state_dict": state, "step": 3},
        lambda state: {f"module.{name}": tensor for name, tensor in state.items()},
        lambda state: {name: torch.nn.Parameter(t) if t.is_floating_point() else t for name, t in state.items()},
    ],
    ids=["within a dictionary", "with a prefix", "as parameters"],
)
def test_wrapped_state_dicts_are_read(task, transformer, legacy, tmp_path, wrap):
    imported = import_checkpoint(written(tmp_path, wrap(legacy)), task).transformer
    np.testing.assert_allclose(imported(task.held_out), transformer(task.held_out), atol=1e-6)


def test_half_precision_is_read(task, transformer, legacy, tmp_path):
    half = {name: t.to(torch.bfloat16) if t.is_floating_point() else t for name, t in legacy.items()}
    imported = import_checkpoint(written(tmp_path, half), task).transformer
    np.testing.assert_allclose(imported.W_E, transformer.W_E, rtol=1e-2)


def test_a_stored_mask_that_hides_what_the_task_shows_is_refused(task, legacy, tmp_path):
    legacy["blocks.0.attn.mask"] = torch.zeros(5, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match="stores a mask that hides positions"):
        import_checkpoint(written(tmp_path, legacy), task)


@pytest.mark.filterwarnings("default")
def test_a_model_that_answers_nothing_is_warned_about(task, legacy, tmp_path):
    legacy["unembed.W_U"] = torch.zeros_like(legacy["unembed.W_U"])
    with pytest.warns(UserWarning, match="no better than the commonest answer.*shapes do not show"):
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
    for content in ([torch.zeros(2)], {"a": 3}, {}, {3: torch.zeros(2)}):
        with pytest.raises(StorageError, match="holds no state dict"):
            import_checkpoint(written(tmp_path, content), task)


def test_a_missing_file_is_named(task, tmp_path):
    with pytest.raises(StorageError, match="There is no file"):
        import_checkpoint(tmp_path / "nowhere.pt", task)
