"""The cost of a thousand comparisons, and how it falls with the number of processes: all in one run.

python -m lab.sweeps --write docs/howto/many-models.md
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import pandas as pd

from lab.page import show, table
from rasplens.compare import compare, comparison_table
from rasplens.model import disguise
from rasplens.sweeps import Job, sweep
from rasplens.sweeps.job import Row
from rasplens.tasks import compile_for, get_task

TASKS = "copy", "sort", "compression"

N_JOBS = 8
"""Comparisons of each task: disguises of its program with as many seeds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="how many, one after the other")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    jobs = [Job("lab.sweeps:compared", {"task": name, "seed": seed}) for seed in range(N_JOBS) for name in TASKS]
    rows = [timed(jobs, n) for n in arguments.processes]
    first = rows[0][1]
    cells = [
        [f"{n}", f"{first / seconds:.2f}", f"{seconds:.0f} s", f"{seconds / len(jobs) * 1000 / 3600:.1f} h", busy]
        for n, seconds, busy in rows
    ]
    headings = ["processes", "times as fast", f"{len(jobs)} comparisons", "a thousand", "seconds a job"]
    text = table(headings, cells) + f"\n\n{os.cpu_count()} processors; tasks {', '.join(TASKS)}, `quick`."
    show(text, arguments.write, "sweeps")


def timed(jobs: list[Job], n: int) -> tuple[int, float, str]:
    """Seconds of a sweep with as many processes, their start included, and those of its jobs by task."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        found: pd.DataFrame = sweep(jobs, folder, processes=n)
        seconds = time.perf_counter() - began
    if found["error"].notna().any():
        raise SystemExit(f"A job failed: {found['error'].dropna().iloc[0]}")
    means = found.groupby("task", sort=False)["seconds"].mean()
    return n, seconds, ", ".join(f"{task} {mean:.1f}" for task, mean in means.items())


def compared(task: str, seed: int) -> Row:
    """A program against a disguise of itself."""
    known = get_task(task)
    reference = compile_for(known)
    result = compare(reference, disguise(reference, seed=seed), task=known, config="quick", seed=seed)
    return {"verdict": comparison_table([result])["verdict"].iloc[0]}


if __name__ == "__main__":
    main()
