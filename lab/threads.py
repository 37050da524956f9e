"""How long a command takes, alone and beside other work on the same processors.

    python -m lab.threads                        of this checkout
    python -m lab.threads --against FOLDER       and of another one, taking turns

Threads that wait by spinning take the processors from other work. So the seconds of all
processors together are measured beside those of the clock. The other work is one busy process a processor.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from lab.page import table

HERE = Path(__file__).parents[1]
COMMAND = ["run", "induction", "--config", "quick"]
HEADINGS = ["beside it", "ratio", "clock", "processors", "the other's clock", "processors"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=3, help="how often; the median counts")
    arguments = parser.parse_args()
    trees = [HERE, *([arguments.against.resolve()] if arguments.against else [])]
    processors = len(os.sched_getaffinity(0))
    rows = []
    for n_busy, beside in ((0, "nothing"), (processors, f"{processors} busy processes")):
        taken: dict[Path, list[tuple[float, float]]] = {tree: [] for tree in trees}
        for _ in range(arguments.rounds):
            for tree in trees:
                with busy(n_busy):
                    taken[tree].append(timed(tree))
        here, *other = ([median(column) for column in zip(*taken[tree], strict=True)] for tree in trees)
        ratio = f"{other[0][0] / here[0]:.1f}×" if other else "–"
        times = [f"{seconds:.1f} s" for seconds in (*here, *(other[0] if other else ()))]
        rows.append([beside, ratio, *times, *["–"] * (len(HEADINGS) - 2 - len(times))])
    text = f"`rasplens {' '.join(COMMAND)}` on {processors} processors, median of {arguments.rounds}.\n\n"
    print(text + table(HEADINGS, rows))


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Run n processes that compute without end."""
    with ExitStack() as stack:
        for _ in range(n):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def timed(tree: Path) -> tuple[float, float]:
    """Return the seconds that the command of a checkout takes: by the clock, and of all processors together."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "rasplens", *COMMAND, "--out", folder + "/out"],
            cwd=tree,  # a module is looked for here first
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=subprocess.DEVNULL,
        )
        began = time.perf_counter()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"The command of {tree} ended with {os.waitstatus_to_exitcode(status)}.")
    return seconds, cpu(used)


def cpu(used: resource.struct_rusage) -> float:
    """Return the seconds of all processors."""
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
