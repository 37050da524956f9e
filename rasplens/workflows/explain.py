"""`rasplens explain`: the program that a model cannot be told from."""

from functools import partial
from pathlib import Path

from rasplens import terminal
from rasplens.compare import Explanation, explain
from rasplens.output_files import Destination
from rasplens.progress import progress_bar
from rasplens.sources import learned_model
from rasplens.sources.request import Request

STAGES = 10
"""At most: the search, the programs that are judged, and their end."""


def explain_and_show(asked: Request, budget: float, to: Destination | None, json: bool) -> None:
    """Searches the program of a model, the shipped one if none is given; prints it, and writes it to a file."""
    if to is not None:
        to.check_file("found.py")
    task = asked.task
    learned = learned_model(task, next(iter(asked.models), None), asked.declared)
    done = 0
    with progress_bar("searching") as advance:

        def report(stage: str) -> None:
            nonlocal done
            done += 1
            advance(stage, done, STAGES)

        found = explain(
            learned.model,
            task=task,
            budget=budget,
            config=asked.config,
            seed=asked.seed,
            vocabulary=learned.vocabulary(task),
            progress=report,
        )
    if to is not None and found.nearest is not None:
        to.write(to.path, partial(_write, found.nearest.source))
    if json:
        terminal.as_json(found.to_dict())
        return
    _show(found, to)


def _write(source: str, place: Path) -> None:
    place.write_text(source)


def _show(found: Explanation, to: Destination | None) -> None:
    terminal.out.print(str(found))
    if to is not None and found.nearest is not None:
        terminal.out.print(f"Program: {to.path}. Compare it: --program {to.path}:program.")
