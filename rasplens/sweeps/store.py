"""Results on disk: one file a job, named by its key, which appears complete or not at all."""

import io
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rasplens.compile.rasp.values import LARGEST_WHOLE
from rasplens.errors import RaspLensError
from rasplens.model.storage import checksum, write_atomically
from rasplens.sweeps.job import Job, Row


class DamagedResultError(RaspLensError):
    """A file under a job's key that does not hold the job's result."""


def stored_rows(folder: str | Path, job: Job) -> dict[str, Any] | None:
    """Return the result of a job, `{"rows": ..., "seconds": ...}`, if it is kept in a folder; else None.

    A file that was changed or belongs to another job is warned of and ignored.
    """
    path = _place(Path(folder), job)
    try:
        return _read(path, job)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = str(error) if isinstance(error, DamagedResultError) else "it is damaged"
        warnings.warn(f"{path} is ignored: {why}. Its job, {job}, is run again.", stacklevel=2)
        return None


def _read(path: Path, job: Job) -> dict[str, Any]:
    found = json.loads(path.read_bytes())
    if found["checksum"] != checksum(found, {}):
        raise DamagedResultError("it was changed after it was written")
    if differing := [name for name, value in _identity(job).items() if found[name] != value]:
        raise DamagedResultError(f"it belongs to another job, whose {differing[0]} is {found[differing[0]]!r}")
    return {"rows": list(found["rows"]), "seconds": float(found["seconds"])}


def store_rows(folder: Path, job: Job, rows: Sequence[Row], seconds: float) -> None:
    """Keeps what a job gave, with what was asked and a checksum.

    Raises:
        StorageError: If it cannot be written.
    """
    content = json.loads(json.dumps({**_identity(job), "rows": list(rows), "seconds": seconds}))
    whole = {**content, "checksum": checksum(content, {})}
    write_atomically(_place(folder, job), json.dumps(whole, indent=1).encode())


def _identity(job: Job) -> dict[str, Any]:
    """Return the values that tell a job from others, in JSON."""
    return {"key": job.key, "run": job.run, "arguments": dict(job.arguments), "files": list(job.files)}


def _place(folder: Path, job: Job) -> Path:
    return folder / f"{job.key}.json"


def table_of(outcomes: Sequence[tuple[Job, dict[str, Any]]]) -> pd.DataFrame:
    """One table of all jobs: their function and arguments, then what they gave, `seconds` and `error`.

    A job that gave several rows has as many; one that failed has one, with its error alone.
    """
    rows = []
    for job, outcome in outcomes:
        own = {"job": job.run.partition(":")[2], **{name: _cell(v) for name, v in job.arguments.items()}}
        for row in outcome.get("rows") or [{}]:
            given = {name: _cell(value) for name, value in row.items()}
            rows.append({**own, **given, "seconds": outcome.get("seconds"), "error": outcome.get("error")})
    frame = pd.DataFrame(rows)
    for name in {name for row in rows for name, value in row.items() if _is_long(value)}:
        frame[name] = _exact_column(rows, name)
    mixed = [name for name in frame if frame[name].dtype == object and frame[name].map(type).nunique() > 1]
    for name in mixed:  # Parquet has one type a column
        kinds = {type(value) for value in frame[name] if not _is_missing(value)}
        if not kinds <= {bool} and not kinds <= {str}:
            frame[name] = frame[name].map(lambda value: None if _is_missing(value) else json.dumps(value))
    return frame


def _exact_column(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    """A column with whole numbers that floats do not hold: none of them is rounded, whatever else it has."""
    values = [None if _is_missing(row.get(name)) else row[name] for row in rows]
    if all(value is None or type(value) is int for value in values):
        return pd.array(values, dtype="Int64")
    return pd.Series(values, dtype=object)


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Writes a table as Parquet, complete or not at all.

    Raises:
        StorageError: If it cannot be written.
    """
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    write_atomically(path, content.getvalue())


def _cell(value: Any) -> Any:
    """Lists and mappings as JSON: a column of a table holds one kind of value."""
    return json.dumps(value) if isinstance(value, list | dict | tuple) else value


def _is_long(value: Any) -> bool:
    return type(value) is int and abs(value) > LARGEST_WHOLE


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)
