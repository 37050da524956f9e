"""A long run on disk: the arrays that it needs to go on as if nothing had happened, and which run it is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors
import safetensors.numpy

from rasplens.model.storage import StorageError, checksum, write_atomically

_HEADER_KEY = "rasplens_training"

_NOT_A_STATE = (
    safetensors.SafetensorError,
    OSError,
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    RecursionError,
)
"""What comes of reading a file that is something else."""


def save_run(path: Path, arrays: Any, run: Mapping[str, Any], progress: Mapping[str, Any]) -> None:
    """Writes the state of a run, which appears complete or not at all.

    Args:
        path: The file.
        arrays: A tree of arrays.
        run: What tells this run from others, in JSON values; `load_run` checks it.
        progress: How far it is, in JSON values.

    Raises:
        StorageError: If it cannot be written; an older state in the same place is then still there.
    """
    tensors = {f"{i:04}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(arrays))}
    header = json.loads(json.dumps({"run": run, "progress": progress}))
    content = json.dumps({**header, "checksum": checksum(header, tensors)})
    try:
        write_atomically(path, safetensors.numpy.save(tensors, metadata={_HEADER_KEY: content}))
    except OSError as error:
        raise _no_room(path, error) from None


def load_run(path: Path, first: Any, run: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arrays and the progress that `save_run` wrote.

    Args:
        path: The file.
        first: A tree of arrays of the same shapes, or of these shapes.
        run: What tells this run from others.

    Raises:
        StorageError: If the file is damaged, or is the state of another run; the message says what differs.
    """
    header, leaves = _read(path)
    _check_same(path, header["run"], json.loads(json.dumps(run)))
    expected, structure = jax.tree.flatten(first)
    if [leaf.shape for leaf in leaves] != [leaf.shape for leaf in expected]:
        raise StorageError(f"{path} is damaged: its arrays have other shapes. Delete it to start afresh.")
    return jax.tree.unflatten(structure, leaves), header["progress"]


def append_history(state_path: Path, reports: Sequence[Any], anew: bool = False) -> None:
    """Adds reports to the history beside a state, one JSON object per line.

    Raises:
        StorageError: If it cannot be written.
    """
    path = state_path.with_suffix(".jsonl")
    try:
        with path.open("w" if anew else "a") as file:
            file.writelines(json.dumps(asdict(report)) + "\n" for report in reports)
    except OSError as error:
        raise _no_room(path, error) from None


def _read(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})[_HEADER_KEY])
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
            is_whole = header["checksum"] == checksum(header, tensors)
    except _NOT_A_STATE as error:
        raise StorageError(f"{path} is no state of a training ({error}). Delete it to start afresh.") from None
    if not is_whole:
        raise StorageError(
            f"{path} was changed after it was written, or is of an older version. Delete it to start afresh."
        )
    return header, list(tensors.values())


def _no_room(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"Cannot write {path}: {error.strerror}. The last state of the training is unharmed: make room and run "
        "the same again, and it goes on from there."
    )


def _check_same(path: Path, stored: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    differing = [name for name in run if stored.get(name) != run[name]]
    if differing:
        what = "; ".join(f"{name} was {stored.get(name)}, now {run[name]}" for name in differing)
        raise StorageError(f"{path} is the state of another training: {what}. Go on with that one, or delete it.")
