"""Many jobs, each done once: what is kept is not done again, and everything is a row of one table."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from rasplens.errors import RaspLensError, expect
from rasplens.model.storage import StorageError
from rasplens.sweeps.claims import Claims
from rasplens.sweeps.job import Job, as_of_now
from rasplens.sweeps.store import stored_rows, table_of, write_table
from rasplens.sweeps.workers import Outcome, in_executor, in_processes, processors

TABLE = "table.parquet"
"""In the folder of a sweep."""


@dataclass(frozen=True)
class Standing:
    """How far a sweep is.

    Attributes:
        done: Jobs that are done, those kept from before and those that failed included.
        failed: Of those, the ones that failed.
        total: All jobs.
        seconds_left: If it goes on so; NaN before the first job of this run is done.
    """

    done: int
    failed: int
    total: int
    seconds_left: float


def sweep(
    jobs: Iterable[Job],
    folder: str | Path,
    executor: Executor | None = None,
    *,
    processes: int | None = None,
    threads: int = 1,
    timeout: float | None = None,
    progress: Callable[[Standing], None] | None = None,
) -> pd.DataFrame:
    """Does jobs, keeps what each gives in a folder, and gives one table, also written as Parquet.

    A sweep that was interrupted goes on where it was: a job whose result is in the folder is not done again, as
    long as its function, arguments, files and the code of RASPLens are the same. A job that fails is a row with
    its error, and is tried again by the next sweep. Jobs that are the same are done once, also where several
    sweeps have one folder: each job is done by the sweep that comes to it first, and the others wait for it. A
    result that was changed or is another job's is warned of, and done again.

    Args:
        jobs: What is to be done.
        folder: Where results are kept: it is made if need be. Only this process writes there, so that workers on
            other machines need no disk in common with it.
        executor: Who does the jobs: anything that `concurrent.futures` calls so, such as Dask's
            `Client.get_executor()`. By default processes of this machine. Where the code is another one, or has
            changed since it was imported, jobs fail.
        processes: How many, without an executor; by default as many as processors have room for.
        threads: Of each of these processes.
        timeout: Seconds after which a job is ended, and is a row with that as its error; None for none. Only for
            processes of this machine: an executor has its own means.
        progress: Called at the start and after every job.

    Returns:
        In the order of the jobs: `job`, the arguments, what the job gave, `seconds`, `error`.

    Raises:
        RaspLensError: If there are no jobs, one is none, a job's function cannot be found, or a number makes no
            sense.
        StorageError: If the folder cannot be written to.
    """
    asked = list(jobs)
    if not asked:
        raise RaspLensError("A sweep needs at least one job; `jobs` is empty.")
    if processes is not None and processes < 1:
        raise RaspLensError(f"A sweep needs at least one process; got {processes}.")
    if threads < 1:
        raise RaspLensError(f"A process needs at least one thread; got {threads}.")
    if timeout is not None and not 0 < timeout < math.inf:
        raise RaspLensError(f"`timeout` must be a positive number of seconds, or None; got {timeout}.")
    if timeout is not None and executor is not None:
        raise RaspLensError("`timeout` works with processes of this machine only; omit it with an executor.")
    for job in asked:
        expect(job, Job, "A sweep takes jobs, such as Job(...) or comparison_job(...)")
    asked = as_of_now(asked)
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"Cannot write to {folder}: {error.strerror}. Choose another folder.") from None
    by_key = {job.key: job for job in asked}
    found: dict[str, Outcome] = {key: kept for key, job in by_key.items() if (kept := stored_rows(folder, job))}
    n = processes or max(1, processors() // threads)
    own = partial(in_processes, n=n, threads=threads, timeout=timeout)
    doing = own if executor is None else partial(in_executor, executor=executor)
    _do([job for key, job in by_key.items() if key not in found], found, folder, doing, progress)
    frame = table_of([(job, found[key]) for key, job in by_key.items()])
    write_table(frame, folder / TABLE)
    return frame


def _do(
    todo: list[Job],
    found: dict[str, Outcome],
    folder: Path,
    doing: Callable[[Iterator[Job]], Iterator[tuple[Job, Outcome]]],
    progress: Callable[[Standing], None] | None,
) -> None:
    """Adds to what was found, and keeps what did not fail."""
    began, kept, failed = time.perf_counter(), len(found), 0
    report = progress or (lambda standing: None)
    report(Standing(kept, 0, kept + len(todo), float("nan")))
    with Claims(folder) as claims:
        for job, outcome in claims.done(todo, doing):
            failed += "error" in outcome
            found[job.key] = outcome
            done = len(found) - kept
            left = (time.perf_counter() - began) / done * (len(todo) - done)
            report(Standing(len(found), failed, kept + len(todo), left))
