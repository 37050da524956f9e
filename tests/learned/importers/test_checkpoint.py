"""Imports, with state dicts as legacy TransformerLens wrote them: weights, zero biases and two buffers."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, LearnedModel, import_checkpoint, untrained
from rasplens.model import Config, StorageError, Transformer, to_bridge
from rasplens.model.forward import rotary_angles
from rasplens.tasks import Task, get_task

UNTRAINED = pytest.mark.filterwarnings("ignore:.* of the answers of '(copy|compression)' right; ")
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
    with pytest.raises(ValueError, match="'compression', not 'sort'"):
        import_checkpoint(path, get_task("sort"))


def test_a_shape_that_does_not_fit_the_task_says_what_differs(legacy, tmp_path):
    path = written(tmp_path, legacy)
    with pytest.raises(ValueError, match="task 'sort'") as caught:
        import_checkpoint(path, get_task("sort"))
    assert "8 tokens (d_vocab) where it needs 52" in str(caught.value)
    assert "8 logits (d_vocab_out) where it needs 50" in str(caught.value)
    assert "5 positions (n_ctx) where it needs 22" in str(caught.value)


def test_parts_without_a_model_for_them_are_named(task, legacy, tmp_path):
    legacy["blocks.0.mlp.W_gate"] = torch.ones(8)
    with pytest.raises(ValueError, match=r"model\.pt .*: blocks\.0\.mlp\.W_gate"):
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
    with pytest.raises(ValueError, match="Give n_heads"):
        import_checkpoint(path, task)
    with pytest.raises(ValueError, match=r"3 heads: .*W_"):
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
    with pytest.raises(ValueError, match=f"mask.*positions.*{task.name!r}"):
        import_checkpoint(written(tmp_path, legacy), task)


@pytest.mark.filterwarnings("default")
def test_a_model_that_answers_nothing_is_warned_about(task, legacy, tmp_path):
    legacy["unembed.W_U"] = torch.zeros_like(legacy["unembed.W_U"])
    with pytest.warns(UserWarning, match=r"0\.\d+ of the answers.* 0\.\d+.*layout"):
        import_checkpoint(written(tmp_path, legacy), task)


def test_missing_parts_are_named(task, legacy, tmp_path):
    del legacy["unembed.W_U"]
    with pytest.raises(ValueError, match=r"HookedTransformer: 'unembed\.W_U' is missing"):
        import_checkpoint(written(tmp_path, legacy), task)


@pytest.mark.parametrize(("name", "n_axes"), [("embed.W_E", 2), ("blocks.0.attn.W_Q", 3), ("unembed.W_U", 2)])
def test_a_misshapen_part_is_named_with_its_axes(task, legacy, tmp_path, name, n_axes):
    legacy[name] = legacy[name].flatten()
    with pytest.raises(ValueError, match=rf"'{name}' is of shape \(\d+,\), not of {n_axes} axes"):
        import_checkpoint(written(tmp_path, legacy), task)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "state dict"),
        (b"hello, I am no model", "state dict"),
        (b"PK\x03\x04 cut off", r"state dict .*damaged"),
        (b"\x10\x00\x00\x00\x00\x00\x00\x00{", "truncated.*safetensors"),
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
    with pytest.raises(StorageError, match=r"state dict .*damaged"):
        import_checkpoint(path, task)


def test_pickled_code_is_never_run(task, tmp_path):
    class Trap:
        def __reduce__(self):
            return (exec, ("raise SystemExit('code from a checkpoint was run')",))

    with pytest.raises(StorageError, match=r"torch can load safely \("):
        import_checkpoint(written(tmp_path, {"embed.W_E": Trap()}), task)


def test_what_is_no_mapping_of_tensors_is_refused(task, tmp_path):
    for content in ([torch.zeros(2)], {"a": 3}, {}, {3: torch.zeros(2)}):
        with pytest.raises(StorageError, match="no state dict"):
            import_checkpoint(written(tmp_path, content), task)


def test_a_missing_file_is_named(task, tmp_path):
    with pytest.raises(StorageError, match=r"no file .*nowhere\.pt"):
        import_checkpoint(tmp_path / "nowhere.pt", task)


SHAPE = Config(n_layers=2, n_heads=2, d_model=8, d_head=4, n_ctx=5, d_vocab=8, d_vocab_out=8, attn_scale=2.0)
KINDS = {
    "standard": SHAPE,
    "shortformer": replace(SHAPE, positions="shortformer"),
    "rotary": replace(SHAPE, positions="rotary"),
    "rotary on half a head": replace(SHAPE, positions="rotary", rotary_dim=2),
    "no positions": replace(SHAPE, positions="none"),
    "relu": replace(SHAPE, d_mlp=12),
    "gelu": replace(SHAPE, d_mlp=12, activation="gelu"),
    "gelu_new, shortformer": replace(SHAPE, d_mlp=12, activation="gelu_new", positions="shortformer"),
    "silu, layer norm": replace(SHAPE, d_mlp=12, activation="silu", normalization="LN"),
    "folded layer norm": replace(SHAPE, normalization="LNPre"),
    "unscaled": replace(SHAPE, attn_scale=1.0),
}
"""What legacy models of TransformerLens may be, whose files are alike."""


def declared(config: Config) -> dict[str, object]:
    """Everything that shapes do not tell, as it is declared."""
    found = {"positions": "standard" if config.positions == "learned" else config.positions}
    return found | {name: getattr(config, name) for name in ("activation", "normalization", "attn_scale")}


def as_legacy(model: Transformer) -> dict[str, torch.Tensor]:
    """A state dict as legacy TransformerLens writes it, buffers included."""
    config = model.config
    state = {name: torch.tensor(array) for name, array in model.weights.items()}
    for layer in range(config.n_layers):
        state[f"blocks.{layer}.attn.mask"] = torch.tril(torch.ones(config.n_ctx, config.n_ctx)).bool()
        if config.positions == "rotary":
            angles = rotary_angles(config.n_ctx, config.rotary_dim)
            both = torch.tensor(np.concatenate([angles, angles], axis=1), dtype=torch.float32)
            state[f"blocks.{layer}.attn.rotary_sin"] = both.sin()
            state[f"blocks.{layer}.attn.rotary_cos"] = both.cos()
    return state


@pytest.fixture
def learned_by_heart(task, random_transformer):
    """From a config, a model with it, and a task of which it knows every answer."""

    def make(config: Config) -> tuple[Transformer, Task]:
        model = random_transformer(config, biases=True, dtype=np.float32, mask=task.mask(config.n_layers))
        places = list(task.loss_positions)
        return model, replace(task, target=lambda ids: model(ids)[:, places].argmax(axis=-1))

    return make


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_what_is_declared_is_what_is_read(learned_by_heart, tmp_path, config):
    model, own = learned_by_heart(config)
    path = written(tmp_path, as_legacy(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imported = import_checkpoint(path, own, **declared(config)).transformer
    assert imported.config == config
    np.testing.assert_allclose(imported(own.held_out), model(own.held_out), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_what_is_not_declared_is_never_silently_wrong(learned_by_heart, tmp_path, config):
    model, own = learned_by_heart(config)
    path = written(tmp_path, as_legacy(model))
    if config.positions == "none":
        with pytest.raises(RaspLensError, match="positions: rotary or none"):
            import_checkpoint(path, own)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        imported = import_checkpoint(path, own).transformer
    right = own.accuracy(imported).token
    if not caught:
        assert right == 1
        differing = set(declared(imported.config).items()) ^ set(declared(config).items())
        assert {name for name, _ in differing} <= {"attn_scale"}
        return
    (warning,) = caught
    said = re.findall(r"(\w+)='?(\w+(?:\.\d+)?)'?", str(warning.message))
    again = {name: float(value) if name == "attn_scale" else value for name, value in said}
    assert "declare" in str(warning.message)
    assert again
    if right < 1:
        assert own.accuracy(import_checkpoint(path, own, **again)).token == 1


def test_adjacent_dimensions_may_be_paired(learned_by_heart, tmp_path):
    """As GPT-J has it: what rotary positions turn together stands side by side."""
    model, own = learned_by_heart(KINDS["rotary"])
    state = as_legacy(model)
    for name in state:
        if name.endswith(("W_Q", "W_K", "b_Q", "b_K")):
            state[name] = state[name][..., [0, 2, 1, 3]]
        if "rotary" in name:
            state[name] = state[name][:, [0, 2, 1, 3]]
    imported = import_checkpoint(written(tmp_path, state), own).transformer
    np.testing.assert_allclose(imported(own.held_out), model(own.held_out), rtol=1e-5, atol=1e-5)
    for name in state:
        if "rotary" in name:
            state[name] = state[name] / 2
    with pytest.raises(RaspLensError, match=r"rotary.*wavelengths.* 10,000"):
        import_checkpoint(written(tmp_path, state), own)


@pytest.mark.parametrize(
    ("config", "wrong", "message"),
    [
        ("rotary", {"positions": "shortformer"}, "positions 'shortformer'.*rotary"),
        ("standard", {"positions": "rotary"}, "positions 'rotary'.*standard or shortformer"),
        ("standard", {"activation": "gelu"}, "activation 'gelu'.*relu"),
        ("silu, layer norm", {"normalization": "none"}, "normalization 'none'.*LN"),
        ("relu", {"activation": "tanh"}, "activation 'tanh'"),
        ("standard", {"attn_scale": 0.0}, r"attn_scale.*above 0; got 0\.0"),
        ("standard", {"attn_scale": float("nan")}, r"attn_scale.*above 0; got nan"),
    ],
)
def test_what_is_declared_must_be_possible(learned_by_heart, tmp_path, config, wrong, message):
    model, own = learned_by_heart(KINDS[config])
    with pytest.raises(RaspLensError, match=message):
        import_checkpoint(written(tmp_path, as_legacy(model)), own, **wrong)


@pytest.mark.parametrize("kind", ["standard", "shortformer", "rotary"])
def test_a_longer_context_and_a_larger_vocabulary_are_cut_to_the_task(learned_by_heart, tmp_path, kind):
    model, own = learned_by_heart(KINDS[kind])
    state = as_legacy(model)
    rng = np.random.default_rng(0)
    order = rng.permutation(11)[:8]
    for name, axis in (("embed.W_E", 0), ("unembed.W_U", 1), ("unembed.b_U", 0)):
        array = np.moveaxis(state[name].numpy(), axis, 0)
        wide = rng.normal(size=(11, *array.shape[1:])).astype(np.float32)
        wide[order] = array
        state[name] = torch.tensor(np.moveaxis(wide, 0, axis).copy())
    if "pos_embed.W_pos" in state:
        state["pos_embed.W_pos"] = torch.cat([state["pos_embed.W_pos"], torch.ones(4, 8)])
    tokens = {token: int(i) for token, i in zip(own.vocab, order, strict=True)}
    assert own.vocab == own.outputs
    path = written(tmp_path, state)
    imported = import_checkpoint(path, own, positions=kind, tokens=tokens).transformer
    np.testing.assert_allclose(imported(own.held_out), model(own.held_out), rtol=1e-5, atol=1e-5)
    with pytest.raises(RaspLensError, match="11 tokens"):
        import_checkpoint(path, own, positions=kind)
    with pytest.raises(RaspLensError, match=f"no id for {own.vocab[0]!r}"):
        import_checkpoint(path, own, positions=kind, tokens={})
    with pytest.raises(RaspLensError, match=r"11\b.*embed\.W_E.*\b99\b"):
        import_checkpoint(path, own, positions=kind, tokens={**tokens, own.vocab[0]: 99})


@pytest.mark.usefixtures("unchecked")
def test_a_state_dict_itself_is_no_file(task, legacy):
    with pytest.raises(RaspLensError, match=r"import_checkpoint.*torch\.save"):
        import_checkpoint(legacy, task)
