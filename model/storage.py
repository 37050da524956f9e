"""Models on disk: one safetensors file whose header carries the config, a format version and a checksum."""

import errno
import glob
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from rasplens.errors import RaspLensError
from rasplens.model.config import Config
from rasplens.model.transformer import Transformer

FORMAT_VERSION = 2
_HEADER_KEY = "rasplens"
_MASK_KEY = "mask"


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

MOST_OF_MEMORY = 0.5
"""A file that is larger than this share of the machine's memory is not read."""


class StorageError(RaspLensError):
    """A file that cannot be read or written: missing, truncated, edited, or not ours."""


@contextmanager
def reading(path: str | Path, what: str, instead: str = "") -> Iterator[None]:
    """Makes one `StorageError` of whatever comes of reading a file that is damaged, forged or another one.

    Args:
        path: The file.
        what: What it should hold, such as "model".
        instead: A sentence on what to do.

    Raises:
        StorageError: If there is no such file, it is too large to be read, or the reading fails.
    """
    path = Path(path)
    try:
        check_size(path)
        yield
    except StorageError:
        raise
    except Exception as error:  # whatever it is: the file is not what it should be
        if isinstance(error, OSError) and error.strerror:
            raise StorageError(f"{path} cannot be read: {error.strerror}.") from None
        reason = " ".join(str(error).split())[:200]
        raise StorageError(
            f"{path} holds no valid {what} ({type(error).__name__}: {reason}).{instead and ' '}{instead}"
        ) from None


def check_size(path: Path) -> None:
    """Raises where a file is not there, or is too large to be read.

    Raises:
        StorageError: In either case.
    """
    if not path.is_file():
        raise StorageError(f"{path} is not a regular file." if path.exists() else f"There is no file {path}.")
    size, most = path.stat().st_size, MOST_OF_MEMORY * machine_memory()
    if size > most:
        raise StorageError(f"{path} has {size / 2**30:.0f} GiB, more than fits into memory.")


def machine_memory() -> float:
    """The bytes of memory that the machine has; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def save(transformer: Transformer, path: str | Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Writes a transformer to one file, which appears complete or not at all.

    Args:
        transformer: What to store.
        path: The file to write; its folder must exist.
        provenance: JSON-serialisable facts about where the weights come from, read by `load_provenance`.

    Raises:
        StorageError: If the folder does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise StorageError(f"Cannot write {path}: the folder {path.parent} does not exist. Create it first.")
    tensors = {**transformer.weights, _MASK_KEY: transformer.mask}
    header = {
        "format": FORMAT_VERSION,
        "config": transformer.config.to_dict(),
        "provenance": dict(provenance or {}),
    }
    header["checksum"] = checksum(header, tensors)
    content = safetensors.numpy.save(
        {name: np.ascontiguousarray(array) for name, array in tensors.items()},
        metadata={_HEADER_KEY: json.dumps(header)},
    )
    write_atomically(path, content)


def load(path: str | Path) -> Transformer:
    """The transformer that `save` wrote.

    Raises:
        StorageError: If the file is missing, truncated, edited, of another format version, or foreign.
    """
    header, tensors = _read(path)
    with reading(path, "model"):
        mask = tensors.pop(_MASK_KEY)
        return Transformer(_config(header["config"], len(tensors)), tensors, mask)


def _config(values: Any, n_arrays: int) -> Config:
    """The config, if it can be that of so many arrays."""
    config = Config.from_dict(values)
    if config.n_layers > n_arrays:
        raise RaspLensError(f"its config has {config.n_layers} layers, the file {n_arrays} arrays")
    return config


def load_provenance(path: str | Path) -> dict[str, Any]:
    """The facts that `save` stored beside the weights.

    Raises:
        StorageError: As `load`.
    """
    return _read(path)[0]["provenance"]


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file by way of a temporary one beside it, so that a reader never sees a part.

    Raises:
        StorageError: If it cannot be written, as into a full or a read-only folder, or if something else than a
            file is there, such as a device; an older file in the same place is then still there.
    """
    if path.exists() and not path.is_file():
        raise StorageError(f"Cannot write {path}: it exists and is not a regular file. Choose another path.")
    with _writing(path):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_temporary_prefix(path))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def append_text(path: Path, text: str, anew: bool = False) -> None:
    """Adds to a file, or begins it.

    Raises:
        StorageError: If it cannot be written.
    """
    with _writing(path), path.open("w" if anew else "a") as file:
        file.write(text)


def remove_orphans(path: Path) -> None:
    """Removes what a writer of this file left behind that was killed: nobody else may be writing it."""
    for orphan in path.parent.glob(f"{glob.escape(_temporary_prefix(path))}*"):
        orphan.unlink(missing_ok=True)


def _temporary_prefix(path: Path) -> str:
    return f".{path.name}.part-"


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = "Free some space, or choose another path." if error.errno in _FULL else "Choose another path."
        raise StorageError(f"Cannot write {path}: {error.strerror}. {full}") from None


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    path = Path(path)
    with reading(path, "model: it is truncated or not a safetensors file"):
        metadata, tensors = read_safetensors(path)
    if _HEADER_KEY not in metadata:
        raise StorageError(f"{path} is a safetensors file, but RASPLens did not write it: it has no config.")
    with reading(path, "model"):
        header = _parse_header(path, metadata[_HEADER_KEY])
        if header["checksum"] != checksum(header, tensors):
            raise StorageError(f"{path} was changed after it was written: its checksum does not match.")
    return header, tensors


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The metadata and the arrays of a file."""
    with safetensors.safe_open(path, framework="numpy") as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in sorted(file.keys())}


def _parse_header(path: Path, text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
        version = header["format"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise StorageError(f"{path} has a damaged header.") from None
    if version != FORMAT_VERSION:
        raise StorageError(
            f"{path} has format version {version}; this RASPLens reads version {FORMAT_VERSION}. "
            "Install the version that wrote it."
        )
    if missing := {"config", "provenance", "checksum"} - set(header):
        raise StorageError(f"{path} has a damaged header: {sorted(missing)} missing.")
    if not isinstance(header["provenance"], dict):
        raise StorageError(f"{path} has a damaged header: its provenance is {header['provenance']!r}.")
    return header


def fingerprint(model: Transformer) -> str:
    """A short checksum of all that decides what a model computes: its shape, its weights and who sees whom."""
    return checksum(asdict(model.config), {**model.weights, "mask": model.mask})[:12]


def checksum(header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over everything in a file but the checksum itself: its header, in JSON values, and its arrays."""
    digest = hashlib.sha256()
    rest = {key: value for key, value in header.items() if key != "checksum"}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
