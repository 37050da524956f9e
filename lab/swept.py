"""The set-up of benchmarks with many jobs: where results are kept, how many processes, and a bar."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from rasplens.progress import progress_bar, sweep_report
from rasplens.sweeps import Job, sweep

RESULTS = Path(".sweeps")
"""Where a benchmark keeps its results, in a folder of its own; git ignores it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How a sweep is done, on the command line of a benchmark."""
    parser.add_argument("--results", type=Path, help="folder of results; what it has is not measured again")
    parser.add_argument("--processes", type=int, help="how many jobs at a time; one a processor by default")
    parser.add_argument("--threads", type=int, default=1, help="of each of them")
    parser.add_argument("--timeout", type=float, help="seconds after which a job is ended; never by default")


def swept(jobs: Iterable[Job], arguments: argparse.Namespace) -> pd.DataFrame:
    """The table of all jobs."""
    name = Path(sys.argv[0]).stem
    with progress_bar(name) as advance:
        folder = arguments.results or RESULTS / name
        n = {"processes": arguments.processes, "threads": arguments.threads, "timeout": arguments.timeout}
        return sweep(jobs, folder, **n, progress=sweep_report(advance))


def chosen(only: str, known: Iterable[str], what: str) -> list[str]:
    """Return the names that `--only` asks for, with commas; all by default."""
    names = list(known)
    asked = only.split(",") if only else names
    if unknown := [name for name in asked if name not in names]:
        raise SystemExit(f"There is no {what} {', '.join(unknown)}; there are {', '.join(names)}.")
    return asked
