"""The head of a report for every task, as pictures: those of the README and of docs/gallery.md.

    python -m lab.gallery --write docs/gallery.md

runs `rasplens run TASK` for each, opens the report in a headless browser, and writes docs/images/TASK.png and the
page.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.page import write
from lab.pictures import browser_page, photograph

TASKS = ("induction", "sort", "copy", "compression")
SIZE = 1300, 1010


def report_of(task: str, folder: Path) -> str:
    """Runs the command, and returns the verdict in a line."""
    command = [sys.executable, "-m", "rasplens", "run", task, "--out", str(folder), "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    levels = ", ".join(f"{level} {answer}" for level, answer in found["verdict"]["levels"].items())
    return f"`{found['program']}`: **{found['verdict']['answer']}** ({levels})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, help="the page to put the pictures on")
    arguments = parser.parse_args()
    images, sections = arguments.write.parent / "images", []
    with tempfile.TemporaryDirectory() as folder, browser_page(*SIZE) as view:
        for task in TASKS:
            verdict = report_of(task, Path(folder) / task)
            photograph(view, Path(folder) / task / "report.html", images / f"{task}.png")
            sections.append(f"## {task}\n\n{verdict}\n\n![The head of the report on {task}](images/{task}.png)")
            print(sections[-1])
    write(arguments.write, "gallery", "\n\n".join(sections))


if __name__ == "__main__":
    main()
