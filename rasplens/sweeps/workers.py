"""Jobs handed out: to processes of this machine, or to any executor."""

import faulthandler
import json
import os
import reprlib
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from rasplens.errors import RaspLensError
from rasplens.sweeps.job import Job, is_too_large

Outcome = dict[str, Any]
"""`{"rows": ..., "seconds": ...}`, or `{"error": ...}`."""

KILLED = (
    "The process of this job was killed, and again when the job ran alone. The job may need more memory; or the "
    'script that calls `sweep` lacks `if __name__ == "__main__":`, without which no process can start.'
)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


AT_ONCE = 200
"""The most jobs in an executor at a time: each holds a lock open, and a process may open few files."""

OVERDUE = "The job did not finish within {timeout:g} seconds, and was stopped."


def run_job(job: Job, code: str, timeout: float | None = None) -> Outcome:
    """Run a job, and return its outcome; an exception is one as well.

    Args:
        job: The job.
        code: `Job.code` where the sweep started; any other code is refused.
        timeout: Seconds of the function after which this process ends.
    """
    began = time.perf_counter()
    try:
        if job.code != code:
            raise RaspLensError(
                f"The code of {job.run}, the code of RASPLens or the version of a library differs from that "
                "where the sweep started. Install the same everywhere, and do not change it while the sweep runs."
            )
        function = job.function()
        with _ended_after(timeout):
            rows = _plain_rows(job, function(**job.arguments))
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return {"error": f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"}
    return {"rows": rows, "seconds": time.perf_counter() - began}


@contextmanager
def _ended_after(timeout: float | None) -> Iterator[None]:
    """Ends this process after some seconds, also where it is held up outside of Python."""
    if timeout is None:
        yield
        return
    with Path(os.devnull).open("w") as nowhere:
        faulthandler.dump_traceback_later(timeout, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def _plain_rows(job: Job, given: Any) -> list[dict[str, Any]]:
    """Return the result of a job as rows of JSON values; numpy's numbers become Python's.

    Raises:
        RaspLensError: If it cannot be kept.
    """
    given = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [given]
    if not all(isinstance(row, Mapping) for row in given):
        raise RaspLensError(
            f"{job.run} must return a row, a mapping from columns to JSON values, or several; got "
            f"{reprlib.repr(given)}."
        )
    try:
        rows: list[dict[str, Any]] = json.loads(json.dumps([dict(row) for row in given], default=_plain))
        json.dumps(rows, ensure_ascii=False).encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise RaspLensError(
            f"{job.run} returned something that is not a JSON value: {error}. Convert it, such as by float()."
        ) from None
    if large := [value for row in rows for value in row.values() if is_too_large(value)]:
        raise RaspLensError(
            f"{job.run} returned {large[0]}: a table holds whole numbers of at most 64 bits. Return it as text."
        )
    own = job.arguments
    if both := [name for row in rows for name in row if name in own and own[name] != row[name]]:
        raise RaspLensError(
            f"{job} returns a column {both[0]!r}, which is an argument with another value. Rename one of them."
        )
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def in_executor(jobs: Iterator[Job], executor: Executor) -> Iterator[tuple[Job, Outcome]]:
    """Jobs with their outcomes, as they come; up to `AT_ONCE` are submitted at once."""
    waiting: dict[Future[Outcome], Job] = {}
    while True:
        waiting |= {executor.submit(run_job, job, job.code): job for job in islice(jobs, AT_ONCE - len(waiting))}
        if not waiting:
            return
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            yield waiting.pop(future), _outcome(future)


@dataclass(frozen=True)
class _AtWork:
    """A job that a process is at.

    Attributes:
        job: The job.
        pool: The process, as a pool of one: if it is killed, no other job is lost.
        began: When the job was handed out.
    """

    job: Job
    pool: ProcessPoolExecutor
    began: float


def in_processes(
    jobs: Iterator[Job], n: int, threads: int = 1, timeout: float | None = None
) -> Iterator[tuple[Job, Outcome]]:
    """Jobs with their outcomes, as they come, from at most `n` processes.

    A job whose process is killed runs once more when the others are done, alone; one that takes longer than
    `timeout` seconds does not.

    Raises:
        RaspLensError: If no process can start, since the script comes from standard input.
    """
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script is not None and not Path(script).exists():
        raise RaspLensError(
            f"A process starts by reading the script, and {script} is not a file. Save the script as a file, or "
            "give `sweep` an executor."
        )
    killed: list[Job] = []
    for job, outcome in _from_pools(jobs, n, threads, timeout):
        if outcome is None:
            killed.append(job)
        else:
            yield job, outcome
    for job, outcome in _from_pools(iter(killed), 1, threads, timeout):
        yield job, {"error": KILLED} if outcome is None else outcome


def _from_pools(
    jobs: Iterator[Job], n: int, threads: int, timeout: float | None
) -> Iterator[tuple[Job, Outcome | None]]:
    """Jobs with their outcomes, as they come; None where the process was killed."""
    free, at_work = [_pool(threads) for _ in range(n)], dict[Future[Outcome], _AtWork]()
    try:
        while True:
            while free and (job := next(jobs, None)) is not None:
                pool = free.pop()
                at_work[_submitted(pool, job, timeout)] = _AtWork(job, pool, time.monotonic())
            if not at_work:
                return
            for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                done = at_work.pop(future)
                is_killed = isinstance(future.exception(), BrokenExecutor)
                free.append(_pool(threads) if is_killed else done.pool)
                if is_killed and timeout is not None and time.monotonic() - done.began >= timeout:
                    yield done.job, {"error": OVERDUE.format(timeout=timeout)}
                else:
                    yield done.job, None if is_killed else _outcome(future)
    finally:
        for pool in (*free, *(one.pool for one in at_work.values())):
            pool.shutdown()


def _submitted(pool: Executor, job: Job, timeout: float | None) -> "Future[Outcome]":
    """The future of a job; one that failed already, if the pool's process was killed."""
    try:
        return pool.submit(run_job, job, job.code, timeout)
    except BrokenExecutor as error:
        failed: Future[Outcome] = Future()
        failed.set_exception(error)
        return failed


def _outcome(future: "Future[Outcome]") -> Outcome:
    error = future.exception()
    return {"error": f"{type(error).__name__}: {error}"} if error is not None else future.result()


def _pool(threads: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=(threads,))


def _begin(threads: int) -> None:
    """Every process has its own processors, and ends with the one that started it, also when that is killed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # More threads than processors would wait for each other.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):  # the last is XLA's
        os.environ[name] = str(threads)
    several = str(threads > 1).lower()
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen={several}"
    import torch

    torch.set_num_threads(threads)
    threadpool_limits(threads)  # of libraries that were there before, such as numpy's


def _end_with_parent() -> None:
    """Ends this process when its parent ends: its results would reach nobody."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
