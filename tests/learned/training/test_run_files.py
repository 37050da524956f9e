import numpy as np
import pytest

from rasplens.learned.training.run_files import load_run, save_run
from rasplens.model import StorageError

ARRAYS = {"maps": np.arange(6.0).reshape(2, 3), "moments": (np.ones(2), np.array(3))}
RUN = {"recipe": {"steps": 3}, "seeds": [0, 1]}


def test_a_state_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {"step": 2})
    arrays, progress = load_run(path, {"maps": np.zeros((2, 3)), "moments": (np.zeros(2), np.array(0))}, RUN)
    assert progress == {"step": 2}
    np.testing.assert_array_equal(arrays["maps"], ARRAYS["maps"])
    assert arrays["moments"][1] == 3


def test_another_run_is_refused_with_what_differs(tmp_path):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {})
    with pytest.raises(StorageError, match=r"another training: seeds was \[0, 1\], now \[2\]"):
        load_run(path, ARRAYS, {**RUN, "seeds": [2]})


def test_other_shapes_and_other_files_are_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {})
    with pytest.raises(StorageError, match="other shapes"):
        load_run(path, {"maps": np.zeros((2, 4)), "moments": ARRAYS["moments"]}, RUN)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(StorageError, match="no valid state of a training"):
        load_run(path, ARRAYS, RUN)


def test_a_state_with_another_bit_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {"step": 2})
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(1000):
        edited = bytearray(content)
        edited[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(edited)
        with pytest.raises(StorageError, match=r"Delete it to start afresh|another training"):
            load_run(path, ARRAYS, RUN)


def test_without_room_the_older_state_stays(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {"step": 1})

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match=r"No space left.*unharmed"):
        save_run(path, ARRAYS, RUN, {"step": 2})
    assert load_run(path, ARRAYS, RUN)[1] == {"step": 1}
