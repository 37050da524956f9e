"""How long the test suites take, beside those of another checkout.

    python -m lab.suites                            the fast suite of this checkout
    python -m lab.suites --slow                     and the slow one
    python -m lab.suites --against FOLDER           and those of another checkout, taking turns
    python -m lab.suites --write CONTRIBUTING.md    puts the table between the page's markers

Each suite is `pytest` as it is called by hand, so that a checkout that has workers uses them. A busy machine slows
all by the clock; the work, in seconds of all cores together, tells less of it.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from lab.page import show, table

HERE = Path(__file__).parents[1]

SUITES = {"fast": ["pytest"], "slow": ["pytest", "-m", "slow"]}
"""The command of each suite."""

HEADINGS = ["suite", "ratio", "here", "work", "the other", "work", "tests here", "the other's"]


@dataclass(frozen=True)
class Timing:
    """One run of a suite.

    Attributes:
        wall: Seconds by the clock.
        work: Seconds of all cores together.
        counts: How many tests did what, in pytest's words.
    """

    wall: float
    work: float
    counts: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", action="store_true", help="the slow suite too")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=1, help="how often; the median counts")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    trees = [HERE, *([arguments.against.resolve()] if arguments.against else [])]
    text = table(HEADINGS, list(rows(["fast", "slow"] if arguments.slow else ["fast"], trees, arguments.rounds)))
    text += f"\n\nOn {len(os.sched_getaffinity(0))} cores; minutes and seconds."
    show(text, arguments.write, "suites")


def rows(suites: list[str], trees: list[Path], rounds: int) -> Iterator[list[str]]:
    """A row for each suite."""
    for suite in suites:
        taken: dict[Path, list[Timing]] = {tree: [] for tree in trees}
        for _ in range(rounds):
            for tree in trees:
                taken[tree].append(timed(SUITES[suite], tree))
                print(tree, suite, taken[tree][-1], file=sys.stderr, flush=True)
        yield row(suite, *taken.values())


def row(suite: str, here: list[Timing], other: list[Timing] | None = None) -> list[str]:
    """The ratio (how many times as long the other takes), times and counts of a suite."""
    ours, theirs = _medians(here), _medians(other) if other else None
    ratio = f"{theirs[0] / ours[0]:.1f}×" if theirs else "–"
    times = [minutes(seconds) for seconds in ours] + ([minutes(s) for s in theirs] if theirs else ["–", "–"])
    return [f"`{' '.join(SUITES[suite])}`", ratio, *times, here[-1].counts, other[-1].counts if other else "–"]


def timed(command: list[str], tree: Path) -> Timing:
    """A suite of a checkout, run once; tests that fail are among its counts.

    Raises:
        SystemExit: If pytest does not come to an end of its own.
    """
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", *command, "-q", "-p", "no:cacheprovider"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} in {tree}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timing(wall, work, done.stdout.strip().splitlines()[-1].partition(" in ")[0])


def minutes(seconds: float) -> str:
    """Seconds as minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02}"


def _medians(timings: list[Timing]) -> tuple[float, float]:
    return median(timing.wall for timing in timings), median(timing.work for timing in timings)


if __name__ == "__main__":
    main()
