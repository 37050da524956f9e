"""The figures of the README: every task's reference and learned model, and the time of `rasplens run`.

    python -m lab.tasks                  prints the table
    python -m lab.tasks --write README.md  puts it between the README's markers

Published figures are quoted from their sources; everything else is measured here.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab.page import show, table
from rasplens.compile import verify
from rasplens.learned import LearnedModel, load_pretrained
from rasplens.reproductions.copying import completed
from rasplens.reproductions.sorting import FRESH_LISTS, accuracy_on_fresh_lists
from rasplens.sources import reference
from rasplens.tasks import Task, get_task

TASKS = ("induction", "sort", "copy", "compression")

PUBLISHED = {
    "induction": "none: the task is ours",
    "sort": "0.9945 of tokens (its notebook, one batch), 0.996 (its checkpoint, fresh lists)",
    "copy": "completes 12-letter prompts (its write-up, two prompts)",
    "compression": "0.9145 of tokens, 0.831 of pairs (its checkpoint, same held-out pairs)",
}

HEADINGS = (
    "task",
    "program right on the task",
    "compiled equals program",
    "learned model, held out: tokens, whole inputs",
    "learned model, the published measure",
    "published",
    "`rasplens run`",
)


def row(name: str) -> list[str]:
    """One line of the table."""
    task, learned = get_task(name), load_pretrained(name)
    compiled = reference(task, None)
    program = task.accuracy(compiled.program, task.held_out)
    check = verify(compiled, inputs=task.sequences(task.held_out))
    accuracy = task.accuracy(learned)
    equal = f"{check.checked - check.undefined:,} inputs, margin {check.margin:.3f}"
    return [
        f"{name} ({compiled.output})",
        f"{program.token:.4f} of {len(task.held_out):,} inputs",
        equal if check.ok else f"WRONG: {check}",
        f"{accuracy.token:.4f}, {accuracy.sequence:.4f}",
        learned_figure(task, learned),
        PUBLISHED[name],
        f"{run_seconds(name):.0f} s",
    ]


def learned_figure(task: Task, learned: LearnedModel) -> str:
    """The learned model's figure that compares with the published one."""
    if task.name == "sort":
        share = accuracy_on_fresh_lists(task, learned.transformer)
        return f"{share:.4f} of tokens on {FRESH_LISTS:,} fresh lists"
    if task.name == "copy":
        share = completed(task, learned.transformer)
        return f"completes {share:.3f} of 12-letter prompts, of those without repeated letters"
    if task.name == "compression":
        accuracy = task.accuracy(learned)
        return f"{accuracy.token:.4f} of tokens, {accuracy.sequence:.4f} of pairs"
    return "none"


def run_seconds(name: str) -> float:
    """The wall time of the whole command, start of Python included."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "rasplens", "run", name, "--out", folder], check=True, capture_output=True
        )
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    text = table(list(HEADINGS), [row(name) for name in TASKS])
    show(text, arguments.write, "tasks")


if __name__ == "__main__":
    main()
