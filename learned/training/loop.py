"""One resumable loop: a long computation that can be killed at any moment and goes on where it was.

What is computed is a `ChunkedRun`, chunk after chunk. The loop reports, keeps the state on disk, and restores it.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from rasplens.learned.training.run_files import alone, append_history, load_run, save_run
from rasplens.model.storage import reading


@runtime_checkable
class Timed(Protocol):
    """A report: a dataclass of JSON values with the seconds since the start, interruptions not included."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """Since the start; the loop fills it in."""


R = TypeVar("R", bound=Timed)


@dataclass(frozen=True, eq=False)
class RunState(Generic[R]):
    """A job between two chunks: all that it needs to go on as if nothing had happened.

    Attributes:
        arrays: A tree of arrays.
        notes: What else it needs, in JSON values.
        reports: Everything that was reported, in order.
        seconds: How long the job has taken so far.
    """

    arrays: Any
    notes: Mapping[str, Any]
    reports: tuple[R, ...] = ()
    seconds: float = 0.0


class ChunkedRun(ABC, Generic[R]):
    """A long computation in chunks. Each chunk is a function of the standing alone."""

    report: type[R]

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """The values that tell it from other jobs, in JSON. Only the same job goes on with a state on disk."""

    @abstractmethod
    def layout(self) -> Any:
        """A tree of arrays, or of their shapes, as `RunState.arrays` is."""

    @abstractmethod
    def first(self) -> RunState[R]:
        """The standing before the first chunk."""

    @abstractmethod
    def is_done(self, at: RunState[R]) -> bool:
        """Whether there is no further chunk."""

    @abstractmethod
    def chunk(self, at: RunState[R]) -> RunState[R]:
        """The standing after another chunk; its new reports come last, without their seconds."""


def run(
    job: ChunkedRun[R],
    progress: Callable[[R], None] | None = None,
    path: str | Path | None = None,
    save_every: float = 0.0,
) -> RunState[R]:
    """The standing of a job at its end.

    Args:
        job: What is computed.
        progress: Called for every report.
        path: A `.safetensors` file to keep the state in, with the reports beside it as `.jsonl`. If it is there
            already, the job goes on from it, and ends with the very bits that it would have had without the
            interruption. None keeps nothing.
        save_every: Seconds between two states on disk; the last state is always written.

    Raises:
        StorageError: If the state cannot be written, is damaged, is that of another job, or another process is
            at it.
    """
    if path is None:
        return _run(job, progress, None, save_every)
    with alone(Path(path)):
        return _run(job, progress, Path(path), save_every)


def _run(
    job: ChunkedRun[R], progress: Callable[[R], None] | None, path: Path | None, save_every: float
) -> RunState[R]:
    at = _begun(job, path)
    saved_at = time.perf_counter()
    while not job.is_done(at):
        new, at = _advanced(job, at)
        if progress is not None:
            for report in new:
                progress(report)
        if path is not None:
            append_history(path, new)
            if time.perf_counter() - saved_at > save_every or job.is_done(at):
                _keep(job, at, path)
                saved_at = time.perf_counter()
    return at


def _keep(job: ChunkedRun[R], at: RunState[R], path: Path) -> None:
    reports = [asdict(report) for report in at.reports]
    save_run(path, at.arrays, job.identity, {"notes": at.notes, "reports": reports, "seconds": at.seconds})


def _begun(job: ChunkedRun[R], path: Path | None) -> RunState[R]:
    """Where the job was left, or its first standing."""
    if path is None or not path.exists():
        began = time.perf_counter()
        at = job.first()
        at = replace(at, seconds=time.perf_counter() - began)
    else:
        arrays, found = load_run(path, job.layout(), job.identity)
        with reading(path, "state of a training"):
            reports = tuple(job.report(**report) for report in found["reports"])
            at = RunState(arrays, found["notes"], reports, float(found["seconds"]))
    if path is not None:
        append_history(path, at.reports, anew=True)
    return at


def _advanced(job: ChunkedRun[R], at: RunState[R]) -> tuple[tuple[R, ...], RunState[R]]:
    """The reports of another chunk, and the standing after it."""
    began, known = time.perf_counter(), len(at.reports)
    after = job.chunk(at)
    seconds = at.seconds + time.perf_counter() - began
    new = tuple(replace(report, seconds=seconds) for report in after.reports[known:])
    return new, replace(after, reports=(*at.reports, *new), seconds=seconds)
