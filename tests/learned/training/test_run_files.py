import re
import subprocess
import sys

import numpy as np
import pytest

from rasplens.learned.training.run_files import alone, load_run, save_run
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
    with pytest.raises(StorageError, match=r"seeds was \[0, 1\], now \[2\]"):
        load_run(path, ARRAYS, {**RUN, "seeds": [2]})
    save_run(path, ARRAYS, {**RUN, "recipe": {"steps": 3, "rate": 0.1, "old": 1}}, {})
    only = re.escape(": recipe.steps was 3, now 4; recipe.old was 1, now None.")
    with pytest.raises(StorageError, match=only):
        load_run(path, ARRAYS, {**RUN, "recipe": {"rate": 0.1, "steps": 4}})


def test_other_shapes_and_other_files_are_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {})
    with pytest.raises(StorageError, match=r"damaged.*shapes"):
        load_run(path, {"maps": np.zeros((2, 4)), "moments": ARRAYS["moments"]}, RUN)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(StorageError, match="state of a training"):
        load_run(path, ARRAYS, RUN)


def test_a_state_with_another_bit_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {"step": 2})
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(1000):
        edited = bytearray(content)
        edited[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(edited)
        with pytest.raises(StorageError, match=r"state\.safetensors.*(Delete it|another run)"):
            load_run(path, ARRAYS, RUN)


def test_without_room_the_older_state_stays(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    save_run(path, ARRAYS, RUN, {"step": 1})

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match=r"No space left.*resume"):
        save_run(path, ARRAYS, RUN, {"step": 2})
    assert load_run(path, ARRAYS, RUN)[1] == {"step": 1}


@pytest.mark.slow
def test_what_another_process_writes_is_left_alone(tmp_path):
    """And free again when that process is killed."""
    path = tmp_path / "state.safetensors"
    code = (
        "from pathlib import Path; from rasplens.learned.training.run_files import alone\n"
        f"with alone(Path({str(path)!r})): print('in', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(StorageError, match=r"state\.safetensors is in use.*Wait"), alone(path):
            pass
        other.kill()
    with alone(path):
        save_run(path, ARRAYS, RUN, {})
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]


def test_what_a_killed_process_left_behind_is_removed(tmp_path):
    path = tmp_path / "state.safetensors"
    for name in (".state.safetensors.part-abc", ".state.safetensors.part-xyz", ".other.safetensors.part-abc"):
        (tmp_path / name).write_text("half")
    with alone(path):
        assert [file.name for file in tmp_path.iterdir() if "part" in file.name] == [".other.safetensors.part-abc"]


def test_a_place_that_cannot_be_written_to_is_said_to_be_that(tmp_path, monkeypatch):
    def readonly(*arguments, **more):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", readonly)
    with pytest.raises(StorageError, match=r"state\.safetensors: Read-only file system\.[^.]*\.$"):
        save_run(tmp_path / "state.safetensors", ARRAYS, RUN, {})
    nowhere = alone(tmp_path / "nowhere" / "state.safetensors")
    with pytest.raises(StorageError, match=r"state\.safetensors: .*nowhere does not exist"):
        nowhere.__enter__()
