"""Algebra on arrays, on all processors that the process may use."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results of a function, in the order of the items.

    Threads work on several items at a time; numpy lets them. So the function must not run a model: the threads
    would share its hooks. There are as many of them as torch may have, which a sweep bounds.
    """
    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        yield from threads.map(function, items)
