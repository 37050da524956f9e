"""Names and axes on state dicts of a few tensors; whole models are imported in test_checkpoint.py."""

import os
import zipfile

import numpy as np
import pytest
import torch
from mutations import damaged

from rasplens.learned.importers.state_dicts import our_names, read_state_dict
from rasplens.model import StorageError

HUGE = torch.sparse_coo_tensor([[0], [0]], [1.0], (10**6, 10**6), check_invariants=True)


def saved(tmp_path, content):
    path = tmp_path / "state.pt"
    torch.save(content, path)
    return path


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "model.", "module._orig_mod."])
def test_the_prefixes_of_wrappers_are_dropped(tmp_path, prefix):
    found = read_state_dict(saved(tmp_path, {f"{prefix}embed.W_E": torch.arange(6.0).reshape(2, 3)}))
    assert list(found) == ["embed.W_E"]
    np.testing.assert_array_equal(found["embed.W_E"], np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        (torch.ones(2, dtype=torch.float16), np.float32),
        (torch.ones(2, dtype=torch.bfloat16), np.float32),
        (torch.ones(2, dtype=torch.float64), np.float64),
        (torch.ones(2, dtype=torch.bool), np.bool_),
    ],
)
def test_only_halves_are_widened(tmp_path, tensor, kind):
    found = read_state_dict(saved(tmp_path, {"embed.W_E": tensor}))["embed.W_E"]
    assert found.dtype == kind
    assert (found == 1).all()


def test_the_only_state_dict_of_a_checkpoint_is_found(tmp_path):
    content = {"step": 3, "state_dict": {"a": torch.zeros(1)}}
    assert list(read_state_dict(saved(tmp_path, content))) == ["a"]
    generators = {"rng": {"cpu": torch.zeros(1)}, "model": {"module.embed.W_E": torch.zeros(1)}}
    assert list(read_state_dict(saved(tmp_path, generators))) == ["embed.W_E"]


def test_several_state_dicts_are_not_told_apart(tmp_path):
    averages, model = ({"embed.W_E": torch.full((1,), number)} for number in (1.0, 2.0))
    for content in ({"ema": averages, "model": model}, {"model": model, "ema": averages}):
        with pytest.raises(StorageError, match=r"state dicts: '(ema|model)', '(ema|model)'\."):
            read_state_dict(saved(tmp_path, content))


def test_names_that_differ_by_a_prefix_are_not_told_apart(tmp_path):
    content = {"embed.W_E": torch.zeros(1), "module.embed.W_E": torch.ones(1)}
    with pytest.raises(StorageError, match=r"'embed\.W_E' twice"):
        read_state_dict(saved(tmp_path, content))


def test_what_holds_none_is_refused(tmp_path):
    with pytest.raises(StorageError, match="no state dict"):
        read_state_dict(saved(tmp_path, {"step": 3}))


def test_masks_are_handed_over_beside_the_weights_and_other_buffers_dropped():
    state = {
        "embed.W_E": np.zeros((3, 2)),
        "blocks.0.attn.mask": np.tri(4, dtype=bool),
        "blocks.0.attn.IGNORE": np.array(-np.inf),
    }
    read = our_names(state, None, "it")
    weights, mask = read.weights, read.mask
    assert list(weights) == ["embed.W_E"]
    assert (mask == np.tri(4)).all()
    assert our_names({"embed.W_E": np.zeros((3, 2))}, None, "it").mask is None


def test_the_axes_of_2022_are_seen_by_what_the_embeddings_share():
    """Three tokens, four positions, two directions."""
    today = {"embed.W_E": np.zeros((3, 2)), "pos_embed.W_pos": np.zeros((4, 2)), "unembed.b_U": np.zeros(3)}
    then = {name: array.T for name, array in today.items()}
    for state in (today, then):
        shapes = {name: array.shape for name, array in our_names(state, None, "it").weights.items()}
        assert shapes == {"embed.W_E": (3, 2), "pos_embed.W_pos": (4, 2), "unembed.b_U": (3,)}


def test_a_bridges_heads_stand_side_by_side():
    """Two heads of three, in a residual stream of four: entry `[4 h + d]` of head `h` is told by its value."""
    queries, output = np.arange(24.0).reshape(6, 4), np.arange(24.0).reshape(4, 6)
    state = {
        "embed.weight": np.zeros((5, 4)),
        "unembed.weight": np.ones((7, 4)),
        "blocks.0.attn.q.weight": queries,
        "blocks.0.attn._original_component.o.weight": output,
        "blocks.0.attn.v.bias": np.arange(6.0),
        "blocks.0.attn.o.bias": np.arange(4.0),
        "blocks.0.mlp.in.weight": np.zeros((8, 4)),
    }
    weights = our_names(state, 2, "it").weights
    for head in range(2):
        np.testing.assert_array_equal(weights["blocks.0.attn.W_Q"][head], queries[3 * head : 3 * head + 3].T)
        np.testing.assert_array_equal(weights["blocks.0.attn.W_O"][head], output[:, 3 * head : 3 * head + 3].T)
    np.testing.assert_array_equal(weights["blocks.0.attn.b_V"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(weights["blocks.0.attn.b_O"], [0, 1, 2, 3])
    assert weights["blocks.0.mlp.W_in"].shape == (4, 8)
    assert weights["unembed.W_U"].shape == (4, 7)


@pytest.mark.parametrize(("n_heads", "message"), [(None, "Give n_heads"), (4, "4 heads: .*W_Q")])
def test_a_bridge_does_not_say_how_many_heads_there_are(n_heads, message):
    state = {"embed.weight": np.zeros((5, 4)), "blocks.0.attn.q.weight": np.zeros((6, 4))}
    with pytest.raises(ValueError, match=message):
        our_names(state, n_heads, "it")


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.empty(2, 2, device="meta"), "embed.W_E .*no numbers"),
        (torch.ones(2, dtype=torch.complex64), "embed.W_E .*torch.complex64"),
        (torch.zeros(1).expand(10**6, 10**6), "embed.W_E .*1,000,000,000,000 numbers"),
        (HUGE, "embed.W_E .*1,000,000,000,000 numbers"),
    ],
)
def test_tensors_without_their_numbers_are_refused(tmp_path, tensor, message):
    with pytest.raises(StorageError, match=message):
        read_state_dict(saved(tmp_path, {"embed.W_E": tensor}))


def test_sparse_tensors_are_filled_up(tmp_path):
    dense = torch.eye(3)
    found = read_state_dict(saved(tmp_path, {"embed.W_E": dense.to_sparse()}))["embed.W_E"]
    np.testing.assert_array_equal(found, dense)


def test_what_unpacks_to_far_more_than_it_is_is_refused(tmp_path):
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data.pkl", bytes(10**7))
    with pytest.raises(StorageError, match="unpack to 10,000,000 bytes"):
        read_state_dict(path)


@pytest.mark.parametrize("n", [50, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_damaged_file_is_read_or_refused(tmp_path, n):
    path = saved(tmp_path, {"embed.W_E": torch.arange(6.0).reshape(2, 3), "unembed.b_U": torch.ones(3)})
    content, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(n):
        path.write_bytes(damaged(content, rng))
        try:
            read_state_dict(path)
        except StorageError:
            refused += 1
    assert refused > 0.3 * n


def test_a_flipped_bit_changes_nothing_that_is_read(tmp_path):
    """Torch reads it all: the archive's checksums tell."""
    tensors = {"embed.W_E": torch.arange(600.0).reshape(20, 30), "unembed.b_U": torch.ones(30)}
    path = saved(tmp_path, tensors)
    content, rng, refused, passed_by_torch = path.read_bytes(), np.random.default_rng(0), 0, 0
    for _ in range(120):
        at, bit = int(rng.integers(len(content))), int(rng.integers(8))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        try:
            found = read_state_dict(path)
        except StorageError:
            refused += 1
            passed_by_torch += is_read_by_torch(path)
            continue
        assert set(found) == set(tensors)
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(found[name], tensor.numpy())
    assert refused > 60
    assert passed_by_torch > 40  # the control: without the checksums these would have been read


def is_read_by_torch(path):
    try:
        torch.load(path, weights_only=True)
    except Exception:
        return False
    return True


def test_an_archive_without_its_end_is_damaged(tmp_path):
    path = saved(tmp_path, {"embed.W_E": torch.ones(2)})
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(StorageError, match=r"damaged: .*archive"):
        read_state_dict(path)


def test_an_old_format_has_no_checksums(tmp_path):
    path = tmp_path / "old.pt"
    torch.save({"embed.W_E": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    with pytest.warns(UserWarning, match=r"old\.pt .*before 1\.6.*checksums"):
        assert list(read_state_dict(path)) == ["embed.W_E"]


def test_what_is_no_file_is_not_read(tmp_path):
    """A pipe would be waited for."""
    os.mkfifo(tmp_path / "pipe.pt")
    (tmp_path / "link.pt").symlink_to(tmp_path / "none.pt")
    irregular = "regular file"
    for name, refusal in (("pipe.pt", irregular), ("link.pt", r"no file .*link\.pt"), ("", irregular)):
        with pytest.raises(StorageError, match=refusal):
            read_state_dict(tmp_path / name)
    (tmp_path / "empty.pt").touch()
    with pytest.raises(StorageError, match=r"empty\.pt .*state dict"):
        read_state_dict(tmp_path / "empty.pt")


def test_what_is_no_model_is_refused_in_one_line_that_says_what_to_give(tmp_path):
    """Of these torch says "101": the byte that it did not expect."""
    (tmp_path / "words.pt").write_text("hello\n")
    with pytest.raises(StorageError, match=r"words\.pt .*\.safetensors") as error:
        read_state_dict(tmp_path / "words.pt")
    assert "101" not in str(error.value)
    assert "\n" not in str(error.value)
