"""The tables of docs/reproductions.md: every published model, trained here, and its figures beside theirs.

    python -m lab.reproductions                                  prints the tables
    python -m lab.reproductions --write docs/reproductions.md    puts them between the page's markers

Published figures are quoted from their sources; everything else is measured here.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from lab.page import table, write
from rasplens.learned import use_all_cores
from rasplens.learned.published_grid import STEPS, train_grid
from rasplens.reproductions import REPRODUCTIONS, Reproduction
from rasplens.tasks import get_task

MARKS = {True: "yes", False: "**no**", None: ""}


def section(entry: Reproduction) -> str:
    """One published model."""
    began = time.perf_counter()
    learned = entry.train()
    seconds = time.perf_counter() - began
    rows = [[f.measure, f.theirs, f.ours, MARKS[f.holds]] for f in entry.check(learned)]
    steps = learned.provenance["steps"]
    return "\n".join(
        [
            f"### {entry.name}",
            "",
            f"{entry.model} ({entry.source}). Recipe `{entry.recipe}` of the task `{entry.task}`, "
            f"seed {entry.seed}: {steps:,} steps in {seconds:.0f} s.",
            "",
            f"    {entry.command}",
            "",
            table(["", "theirs", "ours", "holds"], rows),
        ]
    )


def grid_section() -> str:
    """The notebook's grid."""
    began = time.perf_counter()
    found = train_grid(
        get_task("compression_notebook"), progress=lambda name, done, n: print(f"{done}/{n} {name}")
    )
    cells = [[cell(value) for value in row] for row in found.to_numpy().tolist()]
    return "\n".join(
        [
            "### grid",
            "",
            "Every specification of the training notebook, with its hyperparameters, until 0.999 of the answers "
            f"to a sample of the trained pairs are right, {STEPS:,} steps at most: "
            f"{time.perf_counter() - began:.0f} s for all.",
            "",
            "    rasplens reproduce grid",
            "",
            table(list(found), cells),
        ]
    )


def cell(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    arguments = parser.parse_args()
    use_all_cores()
    sections = []
    for entry in REPRODUCTIONS.values():
        sections.append(section(entry))
        print(sections[-1], flush=True)
    sections.append(grid_section())
    print(sections[-1])
    if arguments.write is not None:
        write(arguments.write, "reproductions", "\n\n".join(sections))


if __name__ == "__main__":
    main()
