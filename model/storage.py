"""Models on disk: one safetensors file whose header carries the config, a format version and a checksum."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from rasplens.model.config import Config
from rasplens.model.transformer import Transformer

FORMAT_VERSION = 2
_HEADER_KEY = "rasplens"
_MASK_KEY = "mask"


class StorageError(ValueError):
    """A model file that cannot be read: missing, truncated, edited, or not ours."""


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
    if _MASK_KEY not in tensors or not isinstance(header["config"], dict):
        raise StorageError(f"{path} does not hold a valid model: it has no mask or no config.")
    mask = tensors.pop(_MASK_KEY)
    try:
        return Transformer(Config.from_dict(header["config"]), tensors, mask)
    except ValueError as error:
        raise StorageError(f"{path} does not hold a valid model: {error}") from None


def load_provenance(path: str | Path) -> dict[str, Any]:
    """The facts that `save` stored beside the weights.

    Raises:
        StorageError: As `load`.
    """
    return _read(path)[0]["provenance"]


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file by way of a temporary one beside it, so that a reader never sees a part."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    path = Path(path)
    if not path.is_file():
        raise StorageError(f"There is no file {path}.")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise StorageError(f"{path} is truncated or no safetensors file ({error}).") from None
    if _HEADER_KEY not in metadata:
        raise StorageError(f"{path} is a safetensors file, but RASPLens did not write it: no config in it.")
    header = _parse_header(path, metadata[_HEADER_KEY])
    if header["checksum"] != checksum(header, tensors):
        raise StorageError(f"{path} was changed after it was written: its checksum does not match.")
    return header, tensors


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
    return header


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
