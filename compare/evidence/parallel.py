"""Algebra on arrays, on all processors."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results of a function, in the order of the items.

    Threads work on several items at a time; numpy lets them. So the function must not run a model: the threads
    would share its hooks.
    """
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        yield from threads.map(function, items)
