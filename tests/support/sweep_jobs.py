"""Functions for jobs of sweeps: importable by other processes, whose path has this folder."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np


def squared(n: int, folder: str | None = None) -> dict[str, object]:
    """A row; and a line in a file for every time that it is computed."""
    if folder is not None:
        with (Path(folder) / f"{n}.count").open("a") as file:
            file.write(f"{os.getpid()}\n")
    return {"square": n * n, "even": n % 2 == 0}


def several(n: int) -> list[dict[str, object]]:
    return [{"i": i, "of": [i, n]} for i in range(n)]


def renaming(square: int) -> dict[str, object]:
    """A column that is named like the argument, and another thing."""
    return {"square": square**2}


def giving(kind: str) -> object:
    """What is no row."""
    numpy = {"real": np.float32(0.5), "whole": np.int64(3)}
    return {
        "array": {"value": {1, 2}},
        "number": 3,
        "numbers": [1, 2],
        "numpy": numpy,
        "large": {"value": -(2**63) - 1},
        "surrogate": {"value": "\ud800"},
    }[kind]


def long(n: int) -> dict[str, object]:
    """Numbers that floats do not hold, beside nothing and beside a fraction."""
    return [{"alone": 2**60 + 1, "mixed": 2**60 + 1}, {"mixed": 0.5}, {"mixed": None}][n]


def hanging(n: int) -> dict[str, object]:
    """One that never ends, and lets no other Python run."""
    if n == 2:
        re.match(r"(a|a)*b", "a" * 60)
    return {"square": n * n}


def one_by_one(n: int) -> Iterator[dict[str, object]]:
    """Rows that are not there yet."""
    yield from ({"square": i * i} for i in range(n))


def failing(n: int) -> dict[str, object]:
    raise ValueError(f"no such number: {n}")


def unlucky(n: int) -> dict[str, object]:
    if n == 3:
        raise ValueError("3 is unlucky")
    return {"square": n * n}


def deadly(n: int) -> dict[str, object]:
    """Kills its process, as the system does when memory runs out."""
    if n == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": n * n}


def deadly_once(n: int, folder: str) -> dict[str, object]:
    """Kills its process the first time."""
    mark = Path(folder) / f"{n}.died"
    if n == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return squared(n, folder)


def slow(n: int, folder: str) -> dict[str, object]:
    """Takes long enough for someone to kill the process that does it."""
    (Path(folder) / f"{n}.pid").write_text(str(os.getpid()))
    time.sleep(0.4)
    return squared(n, folder)


def endless(n: int, folder: str) -> dict[str, object]:
    """Writes on and on, for as long as its process lives."""
    while True:
        with (Path(folder) / f"{n}.beats").open("a") as file:
            file.write(".")
        time.sleep(0.1)


def threads_of_all(n: int) -> dict[str, object]:
    import torch
    from threadpoolctl import threadpool_info

    return {"threads": torch.get_num_threads(), "most": max(pool["num_threads"] for pool in threadpool_info())}
