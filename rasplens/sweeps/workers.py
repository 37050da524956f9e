"""Jobs handed out: to processes of this machine, or to any executor."""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
    wait,
)
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from rasplens.errors import RaspLensError
from rasplens.sweeps.job import Job

Outcome = dict[str, Any]
"""`{"rows": ..., "seconds": ...}`, or `{"error": ...}`."""

KILLED = (
    "The process that did this job was killed, also when the job ran alone. It may need more memory; or the "
    'script that calls `sweep` lacks `if __name__ == "__main__":`, so that no process can start.'
)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_job(job: Job, code: str) -> Outcome:
    """What a job gives; an exception is an outcome as well.

    Args:
        job: The job.
        code: `Job.code` where the sweep began: no other may do it.
    """
    began = time.perf_counter()
    try:
        if job.code != code:
            raise RaspLensError(
                f"The code of {job.run}, of RASPLens or the version of a library is not what it was where the "
                "sweep began. Have the same there, and leave it alone meanwhile."
            )
        rows = _plain_rows(job, job.function()(**job.arguments))
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return {"error": f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"}
    return {"rows": rows, "seconds": time.perf_counter() - began}


def _plain_rows(job: Job, given: Any) -> list[dict[str, Any]]:
    """What a job gave as rows of JSON values; numpy's numbers become Python's.

    Raises:
        RaspLensError: If it cannot be kept.
    """
    given = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [given]
    if not all(isinstance(row, Mapping) for row in given):
        raise RaspLensError(f"{job.run} gives rows: mappings from columns to JSON values, one or several.")
    try:
        rows: list[dict[str, Any]] = json.loads(json.dumps([dict(row) for row in given], default=_plain))
    except TypeError as error:
        raise RaspLensError(f"{job.run} gave what is no JSON value: {error}. Convert it, as by float().") from None
    own = job.arguments
    if both := [name for row in rows for name in row if name in own and own[name] != row[name]]:
        raise RaspLensError(f"{job} gives {both[0]!r}, the name of an argument with another value. Rename one.")
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def in_executor(jobs: Sequence[Job], executor: Executor) -> Iterator[tuple[Job, Outcome]]:
    """Jobs with their outcomes, as they come; all are submitted at once."""
    waiting = {executor.submit(run_job, job, job.code): job for job in jobs}
    for future in as_completed(waiting):
        yield waiting[future], _outcome(future)


def in_processes(jobs: Sequence[Job], n: int, threads: int = 1) -> Iterator[tuple[Job, Outcome]]:
    """Jobs with their outcomes, as they come, from at most `n` processes.

    No more jobs are handed out than there are processes. So when one is killed, those at work are known: they run
    once more, each alone, and the others go on.

    Raises:
        RaspLensError: If no process can start, since the script comes from standard input.
    """
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script is not None and not Path(script).exists():
        raise RaspLensError(
            f"Processes start by reading the script, and {script} is no file. Write the script into one, or give "
            "`sweep` an executor."
        )
    left = list(reversed(jobs))
    while left:
        suspects: list[Job] = []
        with _pool(min(n, len(jobs)), threads) as pool:
            at_work: dict[Future[Outcome], Job] = {}
            while (left or at_work) and not suspects:
                while left and len(at_work) < n:
                    job = left.pop()
                    at_work[_submitted(pool, job)] = job
                for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                    job = at_work.pop(future)
                    if isinstance(future.exception(), BrokenExecutor):
                        suspects.append(job)
                    else:
                        yield job, _outcome(future)
            suspects += at_work.values()
        for job in suspects:
            with _pool(1, threads) as pool:
                future = _submitted(pool, job)
                yield (
                    job,
                    {"error": KILLED} if isinstance(future.exception(), BrokenExecutor) else _outcome(future),
                )


def _submitted(pool: Executor, job: Job) -> "Future[Outcome]":
    """The future of a job; one that failed already, if the pool's processes were killed."""
    try:
        return pool.submit(run_job, job, job.code)
    except BrokenExecutor as error:
        failed: Future[Outcome] = Future()
        failed.set_exception(error)
        return failed


def _outcome(future: "Future[Outcome]") -> Outcome:
    error = future.exception()
    return {"error": f"{type(error).__name__}: {error}"} if error is not None else future.result()


def _pool(n: int, threads: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(n, get_context("spawn"), initializer=_begin, initargs=(threads,))


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
    """Waits for the process that started this one; without it, what a job gives would reach nobody."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
