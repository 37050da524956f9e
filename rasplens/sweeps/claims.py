"""Locks on disk, by which several sweeps of one folder share its jobs: the first to reach a job does it."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from rasplens.model.storage import StorageError
from rasplens.sweeps.job import Job
from rasplens.sweeps.store import store_rows, stored_rows
from rasplens.sweeps.workers import Outcome

POLL = 0.5
"""Seconds between two looks at jobs that other sweeps do."""


class Claims:
    """The jobs that this sweep has locked; a lock is released when its job is stored, or when the process ends.

    Args:
        folder: Of the results.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._locks: dict[str, FileLock] = {}

    def __enter__(self) -> "Claims":
        return self

    def __exit__(self, *error: object) -> None:
        for key in list(self._locks):
            self._release(key)

    def done(
        self, jobs: Iterable[Job], doing: Callable[[Iterator[Job]], Iterator[tuple[Job, Outcome]]]
    ) -> Iterator[tuple[Job, Outcome]]:
        """Jobs with their outcomes, kept in the folder: done here, or by another sweep meanwhile.

        Args:
            jobs: What is to be done.
            doing: Does jobs, which it takes one by one as it has room for them.
        """
        left = list(jobs)
        while left:
            elsewhere: list[Job] = []
            others: list[tuple[Job, Outcome]] = []
            for job, outcome in doing(self._mine(left, elsewhere, others)):
                if "error" not in outcome:
                    store_rows(self._folder, job, outcome["rows"], outcome["seconds"])
                self._release(job.key)
                yield job, outcome
            yield from others
            if len(elsewhere) == len(left):
                time.sleep(POLL)
            left = elsewhere

    def _mine(self, jobs: Iterable[Job], elsewhere: list[Job], others: list[tuple[Job, Outcome]]) -> Iterator[Job]:
        """Yield the jobs that no sweep has locked or done; the others go into two lists."""
        for job in jobs:
            if not self._take(job):
                elsewhere.append(job)
            elif (kept := stored_rows(self._folder, job)) is not None:
                self._release(job.key)
                others.append((job, kept))
            else:
                yield job

    def _take(self, job: Job) -> bool:
        """Whether a job is this sweep's.

        Raises:
            StorageError: If nothing can be written there.
        """
        lock = FileLock(self._folder / f".{job.key}.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        except OSError as error:
            raise StorageError(
                f"Cannot write to {self._folder}: {error.strerror}. Choose another folder."
            ) from None
        self._locks[job.key] = lock
        return True

    def _release(self, key: str) -> None:
        lock = self._locks.pop(key)
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
