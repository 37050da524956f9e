"""The numbers of weighted programs as files."""

import numpy as np
import pytest
from weighted_samples import LETTERS, reverse, two_steps, with_noise

from rasplens.compile.weighted import as_transformer, load_numbers, numbers_of, save_numbers
from rasplens.errors import RaspLensError
from rasplens.model import save
from rasplens.model.storage import StorageError


def test_numbers_come_back(tmp_path):
    program = with_noise(two_steps())
    save_numbers(program, tmp_path / "numbers.safetensors")
    found = numbers_of(load_numbers(two_steps(), tmp_path / "numbers.safetensors"))
    assert found.keys() == numbers_of(program).keys()
    for name, numbers in numbers_of(program).items():
        np.testing.assert_array_equal(found[name], numbers)


def test_numbers_of_another_program_are_refused(tmp_path):
    path = tmp_path / "numbers.safetensors"
    save_numbers(reverse(), path)
    with pytest.raises(RaspLensError, match="another program: it has none for"):
        load_numbers(two_steps(), path)
    save_numbers(two_steps(), path)
    with pytest.raises(RaspLensError, match="another program: it has none for"):
        load_numbers(reverse(), path)


def test_a_file_that_is_damaged_missing_or_another_one_is_refused(tmp_path):
    path = tmp_path / "numbers.safetensors"
    with pytest.raises(StorageError, match="no file"):
        load_numbers(reverse(), path)
    with pytest.raises(StorageError, match="folder"):
        save_numbers(reverse(), tmp_path / "none" / "numbers.safetensors")
    save_numbers(reverse(), path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match="changed after it was written"):
        load_numbers(reverse(), path)
    path.write_bytes(content[:20])
    with pytest.raises(StorageError):
        load_numbers(reverse(), path)
    save(as_transformer(reverse(), LETTERS, np.ones((4, 4), dtype=bool)), path)
    with pytest.raises(StorageError):
        load_numbers(reverse(), path)
