"""Weighted programs of the shipped models: fitted, and stated beside hard programs and other seeds.

python -m lab.weighted.readings --others FOLDER                        the table
python -m lab.weighted.readings --others FOLDER --write docs/findings.md

FOLDER has models of other seeds, `TASK-SEED.safetensors`; without it, they are trained first. `--checkpoint
TASK=FILE` reads a published model too. Tables and numbers are kept in lab/results; `lab/weighted/figure.py` draws
them.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from lab.page import RESULTS, show, table, write_csv
from lab.swept import chosen
from lab.weighted.compressing import compressing, sizes
from lab.weighted.copying import copying
from lab.weighted.numbers import keep
from lab.weighted.sorting import sorting
from rasplens.compare.weighted.fit import FitConfig, fit
from rasplens.compare.weighted.statement import Statement, state
from rasplens.compile.weighted import Vote
from rasplens.learned import LearnedModel, import_checkpoint, load_learned, load_pretrained, train
from rasplens.model.transformer import AnyModel
from rasplens.progress import Advance, progress_bar
from rasplens.tasks import compile_for, get_task

SEEDS = (1, 2, 3)
"""Of the other models."""


@dataclass(frozen=True)
class Reading:
    """A weighted program of a task, and how its numbers are fitted.

    Attributes:
        program: From the model to the program, where the fit starts.
        fits: One after another.
        parts: What is patched in the table.
    """

    program: Callable[[AnyModel], Vote]
    fits: Sequence[FitConfig]
    parts: Sequence[str]


READINGS: Mapping[str, Reading] = {
    "copy": Reading(lambda model: copying(), [FitConfig(steps=3_000, rate=0.05)], ("values", "keys")),
    "sort": Reading(
        lambda model: sorting(),
        [FitConfig(inputs=4_000, questions=4_000, steps=10_000, rate=0.03)],
        ("values", "keys", "queries"),
    ),
    "compression": Reading(
        lambda model: compressing(sizes(model)),
        [
            FitConfig(inputs=6_000, questions=8_000, steps=800, rate=0.03, held=("size",)),
            FitConfig(inputs=6_000, questions=8_000, steps=20_000, rate=0.005),
        ],
        ("values SEP←d1", "values SEP←d2", "keys SEP←d1", "keys SEP←d2"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tasks, with commas")
    parser.add_argument("--others", type=Path, help="a folder of models of other seeds; trained if left out")
    parser.add_argument("--checkpoint", action="append", default=[], help="TASK=FILE; say it again for more")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    arguments = parser.parse_args()
    sections = []
    for name in chosen(arguments.only, READINGS, "task"):
        others = _others(name, arguments.others)
        for origin, model in _models(name, arguments.checkpoint):
            stem = f"weighted-{name}-{origin.replace(' ', '-')}"
            with progress_bar(f"{name}, {origin}") as advance:
                program, statement = read(name, model, others, advance)
            keep(program, stem)
            found = statement.table()
            write_csv(RESULTS / f"{stem}.csv", list(found), found.to_numpy().tolist())
            sections.append(section(f"{name}, {origin}", found, READINGS[name].parts))
            print(sections[-1], file=sys.stderr)
    show("\n\n".join(sections), arguments.write, "weighted")


SHIPPED = "trained here"


def read(
    name: str, model: AnyModel, others: Mapping[str, AnyModel], advance: Advance = lambda what, done, total: None
) -> tuple[Vote, Statement]:
    """A task's weighted program with the numbers that are fitted to a model, and what it says of it.

    Args:
        name: The task.
        model: The model.
        others: Models of other seeds.
        advance: Called with what is done.
    """
    task, reading = get_task(name), READINGS[name]
    program = reading.program(model)
    for config in reading.fits:
        report = partial(_report, advance, config.steps)
        program = fit(program, model, task, config, progress=report)
    hard = {f"hard: {one}": compile_for(task, one) for one in task.programs}
    return program, state(model, task, {**hard, "weighted": program, **others})


def _report(advance: Advance, steps: int, done: int, loss: float) -> None:
    advance(f"loss {loss:.3f}", done, steps)


def _models(name: str, checkpoints: Sequence[str]) -> list[tuple[str, LearnedModel]]:
    paths = [Path(path) for task, _, path in (given.partition("=") for given in checkpoints) if task == name]
    published = [(f"published checkpoint {path.stem}", import_checkpoint(path, get_task(name))) for path in paths]
    return [(SHIPPED, load_pretrained(name)), *published]


def _others(name: str, folder: Path | None) -> dict[str, LearnedModel]:
    if folder is None:
        recipe = load_pretrained(name).provenance["recipe_name"]
        return {f"seed {seed}": train(name, recipe, seed) for seed in SEEDS}
    return {f"seed {seed}": load_learned(folder / f"{name}-{seed}.safetensors") for seed in SEEDS}


def section(title: str, found: pd.DataFrame, parts: Sequence[str]) -> str:
    """What agrees with a model, as a table: of answers that change under some patches, with intervals."""
    rows = []
    for _, row in found.iterrows():
        numbers = "–" if pd.isna(row["numbers"]) else f"{row['numbers']:,}"
        shares = [
            f"{row[f'{one} changed']:.2f} ({row[f'{one} changed low']:.2f}–{row[f'{one} changed high']:.2f})"
            for one in parts
        ]
        rows.append([row["name"], numbers, f"{row['answers']:.3f}", *shares])
    return f"### {title}\n\n" + table(["", "numbers", "answers", *parts], rows)


if __name__ == "__main__":
    main()
