import json
import os
import struct

import numpy as np
import pytest
import safetensors.numpy

from rasplens.model import Config, StorageError, load, load_provenance, save
from rasplens.model.storage import write_atomically

CONFIG = Config(n_layers=1, n_heads=2, d_model=6, d_head=4, n_ctx=5, d_vocab=7, d_vocab_out=3, d_mlp=4)


@pytest.fixture
def stored(random_transformer, tmp_path):
    model = random_transformer(CONFIG, biases=True, dtype=np.float32)
    path = tmp_path / "model.safetensors"
    save(model, path, {"command": "made here", "seed": 3})
    return model, path


def edit_header(path, change):
    """Rewrites the JSON that RASPLens keeps in the metadata, leaving the tensors as they are."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    outer = json.loads(content[8 : 8 + size])
    header = json.loads(outer["__metadata__"]["rasplens"])
    change(header)
    outer["__metadata__"]["rasplens"] = json.dumps(header)
    text = json.dumps(outer).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])


def test_what_is_saved_is_loaded(stored):
    model, path = stored
    back = load(path)
    assert back.config == model.config
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back.mask, model.mask)
    assert set(back.weights) == set(model.weights)
    for name, array in model.weights.items():
        np.testing.assert_array_equal(back.weights[name], array)
    assert load_provenance(path) == {"command": "made here", "seed": 3}


def test_saving_again_replaces_the_file_and_leaves_nothing_else(stored, tmp_path):
    model, path = stored
    save(model, path)
    assert load_provenance(path) == {}
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("kept", [0, 7, 100, 900, -1])
def test_a_truncated_file_is_refused(stored, kept):
    _, path = stored
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(StorageError, match=r"truncated.*safetensors"):
        load(path)


def test_a_flipped_bit_in_the_weights_is_noticed(stored):
    _, path = stored
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(StorageError, match="was changed after it was written"):
        load(path)


def test_a_flipped_bit_anywhere_changes_nothing_that_is_read(stored):
    model, path = stored
    content, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(200):
        at, bit = int(rng.integers(len(content))), int(rng.integers(8))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        try:
            found = load(path)
        except StorageError:
            refused += 1
            continue
        assert found.config == model.config
        assert all((found.weights[name] == array).all() for name, array in model.weights.items())
    assert refused > 150


def test_an_edited_config_is_noticed(stored):
    _, path = stored
    edit_header(path, lambda header: header["config"].update(attn_scale=1.0))
    with pytest.raises(StorageError, match="was changed after it was written"):
        load(path)


def test_another_format_version_is_named(stored):
    _, path = stored
    edit_header(path, lambda header: header.update(format=3))
    with pytest.raises(StorageError, match=r"version 3.*version 2"):
        load(path)


def test_a_header_without_its_parts_is_refused(stored):
    _, path = stored
    edit_header(path, lambda header: header.pop("checksum"))
    with pytest.raises(StorageError, match=r"header.*\['checksum'\]"):
        load(path)


def test_a_header_that_is_no_json_object_is_refused(stored, tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"a": np.zeros(2)}, path, metadata={"rasplens": "["})
    with pytest.raises(StorageError, match="header"):
        load(path)


def test_somebody_elses_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "foreign.safetensors"
    safetensors.numpy.save_file({"a": np.zeros(2)}, path)
    with pytest.raises(StorageError, match=r"RASPLens.*config"):
        load(path)


def test_a_missing_file_and_a_missing_folder_are_named(stored, tmp_path):
    model, _ = stored
    with pytest.raises(StorageError, match=r"no file .*nowhere\.safetensors"):
        load(tmp_path / "nowhere.safetensors")
    with pytest.raises(StorageError, match=r"/dev/null.*regular file"):
        load("/dev/null")
    with pytest.raises(StorageError, match=r"folder .*absent"):
        save(model, tmp_path / "absent" / "model.safetensors")


@pytest.mark.parametrize(("was", "becomes"), [(b'"F32"', b'"I32"'), (b"[4,6]", b"[6,4]")])
def test_other_dtypes_and_shapes_of_the_same_bytes_are_noticed(tmp_path, random_transformer, was, becomes):
    config = Config(n_layers=1, n_heads=1, d_model=6, d_head=2, n_ctx=3, d_vocab=4, d_vocab_out=2)
    save(random_transformer(config, dtype=np.float32), path := tmp_path / "m.safetensors")
    content = path.read_bytes()
    assert was in content
    path.write_bytes(content.replace(was, becomes))
    with pytest.raises(StorageError, match="was changed after it was written"):
        load(path)


def test_what_is_no_file_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(StorageError, match=r"Cannot write.*regular file"):
            write_atomically(path, b"")
    assert (tmp_path / "fifo").is_fifo()
