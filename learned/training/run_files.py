"""A long run on disk: the arrays that it needs to go on as if nothing had happened, and which run it is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy
from filelock import FileLock, Timeout

from rasplens.model.storage import (
    StorageError,
    append_text,
    checksum,
    read_safetensors,
    reading,
    remove_orphans,
    write_atomically,
)

_HEADER_KEY = "rasplens_training"

_AFRESH = "Delete it to start afresh."


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
    except StorageError as error:
        unharmed = " The last saved state is intact: run the same command again to resume from it."
        raise StorageError(f"{error}{unharmed if path.exists() else ''}") from None


def load_run(path: Path, first: Any, run: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arrays and the progress that `save_run` wrote.

    Args:
        path: The file.
        first: A tree of arrays of the same shapes, or of these shapes.
        run: What tells this run from others.

    Raises:
        StorageError: If the file is damaged, or is the state of another run; the message says what differs.
    """
    with reading(path, "state of a training", _AFRESH):
        header, leaves = _read(path)
        _check_same(path, header["run"], json.loads(json.dumps(run)))
        expected, structure = jax.tree.flatten(first)
        if [leaf.shape for leaf in leaves] != [leaf.shape for leaf in expected]:
            raise StorageError(f"{path} is damaged: its arrays have the wrong shapes. {_AFRESH}")
        return jax.tree.unflatten(structure, leaves), dict(header["progress"])


def append_history(state_path: Path, reports: Sequence[Any], anew: bool = False) -> None:
    """Adds reports to the history beside a state, one JSON object per line.

    Raises:
        StorageError: If it cannot be written.
    """
    lines = "".join(json.dumps(asdict(report)) + "\n" for report in reports)
    append_text(state_path.with_suffix(".jsonl"), lines, anew)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Locks a state against other processes, and removes what a killed process left behind.

    Raises:
        StorageError: If another process has it, or nothing can be written there.
    """
    if not path.parent.is_dir():
        raise StorageError(f"Cannot write {path}: the folder {path.parent} does not exist. Create it first.")
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StorageError(
            f"{path} is in use by a run that has not ended. Wait for it, or give this one another path."
        ) from None
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error.strerror}. Choose another path.") from None
    try:
        remove_orphans(path)
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _read(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    metadata, tensors = read_safetensors(path)
    header = json.loads(metadata[_HEADER_KEY])
    if header["checksum"] != checksum(header, tensors):
        raise StorageError(f"{path} was changed after it was written, or comes from an older version. {_AFRESH}")
    return header, list(tensors.values())


def _check_same(path: Path, stored: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    if differing := list(_differences(stored, run)):
        what = "; ".join(f"{name} was {before}, now {now}" for name, before, now in differing)
        raise StorageError(f"{path} is the state of another run: {what}. Resume that run, or delete the file.")


def _differences(stored: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the values that differ, as name, before and now; of a recipe each field by itself."""
    for name, now in run.items():
        before = stored.get(name)
        if isinstance(now, Mapping) and isinstance(before, Mapping):
            of_fields = _differences(before, {**dict.fromkeys(before), **now})
            yield from ((f"{name}.{field}", *both) for field, *both in of_fields)
        elif before != now:
            yield name, before, now
