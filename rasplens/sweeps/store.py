"""Results on disk: one file a job, named by its key, which appears complete or not at all."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rasplens.model.storage import write_atomically
from rasplens.sweeps.job import Job, Row


def stored_rows(folder: str | Path, job: Job) -> dict[str, Any] | None:
    """What a job gave, as `{"rows": ..., "seconds": ...}`, if it is kept in a folder; else None."""
    try:
        found = json.loads((Path(folder) / f"{job.key}.json").read_text(encoding="utf-8"))
        return {"rows": list(found["rows"]), "seconds": float(found["seconds"])}
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # a damaged file is as good as none
        return None


def store_rows(folder: Path, job: Job, rows: Sequence[Row], seconds: float) -> None:
    """Keeps what a job gave, with what was asked.

    Raises:
        StorageError: If it cannot be written.
    """
    asked = {"run": job.run, "arguments": dict(job.arguments), "files": list(job.files)}
    content = json.dumps({**asked, "rows": list(rows), "seconds": seconds}, indent=1)
    write_atomically(folder / f"{job.key}.json", content.encode())


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
    mixed = [name for name in frame if frame[name].map(type).nunique() > 1 and frame[name].dtype == object]
    for name in mixed:  # Parquet has one type a column
        kinds = {type(value) for value in frame[name] if not _is_missing(value)}
        if not kinds <= {bool} and not kinds <= {str}:
            frame[name] = frame[name].map(lambda value: None if _is_missing(value) else json.dumps(value))
    return frame


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


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)
