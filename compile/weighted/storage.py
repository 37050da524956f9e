"""The numbers of weighted programs as files. Its functions are Python: they stay where they are written."""

import json
from pathlib import Path

import numpy as np
import safetensors.numpy

from rasplens.compile.weighted.language import Vote, numbers_of, with_numbers
from rasplens.errors import RaspLensError
from rasplens.model.storage import StorageError, checksum, reading, write_atomically

FORMAT = "rasplens weighted program"
"""What a file's header says that it holds."""

_HEADER = "weighted"


def save_numbers(program: Vote, path: str | Path) -> None:
    """Writes the numbers of a program, such as `fit` finds, to one file, which appears complete or not at all.

    Args:
        program: The program.
        path: The file; its folder must exist.

    Raises:
        StorageError: If the folder does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise StorageError(f"Cannot write {path}: the folder {path.parent} does not exist. Create it first.")
    tensors = {name: np.ascontiguousarray(numbers) for name, numbers in numbers_of(program).items()}
    header = {"format": FORMAT}
    header["checksum"] = checksum(header, tensors)
    write_atomically(path, safetensors.numpy.save(tensors, metadata={_HEADER: json.dumps(header)}))


def load_numbers(program: Vote, path: str | Path) -> Vote:
    """A program with the numbers that `save_numbers` wrote.

    Args:
        program: The program whose numbers they are, with any of its own.
        path: The file.

    Raises:
        StorageError: If the file is missing, damaged or foreign.
        RaspLensError: If its numbers are not those that the program has, by names and shapes.
    """
    path = Path(path)
    with reading(path, "numbers of a weighted program"):
        with safetensors.safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})[_HEADER])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        written = header.pop("checksum")
        if header != {"format": FORMAT} or written != checksum(header, tensors):
            raise RaspLensError("it was changed after it was written")
    if missing := sorted(set(numbers_of(program)) - set(tensors)):
        raise RaspLensError(f"{path} holds the numbers of another program: it has none for {', '.join(missing)}.")
    return with_numbers(program, tensors)
