"""Algebra on arrays, on all processors that the process may use."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the results of a function, in the order of the items.

    Threads work on several items at a time; numpy lets them. So the function must not run a model: the threads
    would share its hooks.
    """
    with ThreadPoolExecutor(_threads()) as threads:
        yield from threads.map(function, items)


def _threads() -> int:
    """Return how many threads there may be: one a processor, or `OMP_NUM_THREADS`, which a sweep sets."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    bound = os.environ.get("OMP_NUM_THREADS", "")
    return min(processors, int(bound)) if bound.isdecimal() and int(bound) else processors
