"""Models whose program is known: is it found, and is anything else said to be it?

python -m lab.explain                                    the library, compiled and disguised
python -m lab.explain --sources random --first 60        random programs
python -m lab.explain --only sort,reverse --config quick a few
python -m lab.explain --write docs/explaining.md         puts the table between the page's markers
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lab.labelled.random_programs import N_PROGRAMS, random_program
from lab.page import show, table
from lab.swept import add_arguments, chosen, swept
from rasplens.compare import explain
from rasplens.compare.config import PRESETS, Preset, get_config
from rasplens.compare.explaining.explanation import Explanation
from rasplens.compare.study import study_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, UNKNOWN, judge
from rasplens.compile import CompiledModel
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError
from rasplens.model import disguise
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row
from rasplens.tasks import Task, compile_for, task_from_program

SOURCES = "library", "random"

MOST_SELECTORS = 3
"""Random programs with more selectors are left out."""

CONDITION = 10.0
"""Of the oblique change of basis of a disguise."""

RECOVERED, ALIKE, FALSE, NONE = "recovered", "not told apart", "false", "none"
"""A program that the known one's model implements; one of which neither model can be told; another one; none."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=["library"])
    parser.add_argument("--only", default="", help="programs of the library, with commas")
    parser.add_argument("--first", type=int, default=N_PROGRAMS, help="so many random programs")
    parser.add_argument("--config", choices=list(PRESETS), default="standard", help="of the last judgement")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    add_arguments(parser)
    arguments = parser.parse_args()
    asked = {"config": arguments.config, "seed": arguments.seed}
    names = {
        "library": chosen(arguments.only, CATALOGUE, "program"),
        "random": [f"random_{number}" for number in range(arguments.first)],
    }
    jobs = [
        Job("lab.explain:rows", {"source": source, "name": name, **asked})
        for source in arguments.sources
        for name in names[source]
    ]
    show(summary(swept(jobs, arguments)), arguments.write, "explaining")


def rows(source: str, name: str, config: Preset, seed: int) -> Iterator[Row]:
    """For a program's compiled model, and for a disguise of it: what is found."""
    try:
        task, compiled = _known(source, name)
    except RaspLensError as error:
        yield {"model": "–", "found": "no task", "why": str(error).partition(". ")[0]}
        return
    disguised = disguise(compiled, seed=seed, extra_width=3, basis="oblique", condition=CONDITION)
    for kind, model in (("compiled", compiled), ("disguised", disguised)):
        if source == "random" and kind == "disguised":
            continue
        found = explain(model, task=task, config=config, seed=seed)
        nearest = found.nearest
        said = None if nearest is None else nearest.verdict or nearest.searching
        yield {
            "model": kind,
            "found": what(found, task, compiled, seed),
            "judged": len(found.tried),
            "seconds": found.seconds,
            "verdict": None if said is None else said.answer,
            "nodes": None if nearest is None else nearest.n_nodes,
            "tree": None if nearest is None else nearest.table,
            "why": found.ended if said is None else " ".join(said.reasons[:1]),
        }


def _known(source: str, name: str) -> tuple[Task, CompiledModel]:
    """A task and the program that its model is known to implement."""
    if source == "random":
        program = random_program(int(name.removeprefix("random_")))
        compiled = compile_for(program.task(), program.program)
        if (n := len(compiled.heads)) > MOST_SELECTORS:
            raise RaspLensError(f"{n} selectors, where {MOST_SELECTORS} are the most.")
        return program.task(), compiled
    entry = CATALOGUE[name]
    task = task_from_program(
        entry.build(), entry.vocab, entry.max_len, causal=dict(entry.options).get("causal", False)
    )
    return task, compile_for(task, entry.build())


def what(found: Explanation, task: Task, truth: CompiledModel, seed: int) -> str:
    """Whether what is found is the truth: whether the program's own compiled model is said to implement it too."""
    if not found:
        open_ones = [one for one in found.tried if one.answer == UNKNOWN]
        alike = any(_answer(one.compiled, truth, task, seed) == UNKNOWN for one in open_ones)
        return ALIKE if alike else NONE
    said = _answer(found.programs[0].compiled, truth, task, seed)
    return RECOVERED if said in (IMPLEMENTS, UNKNOWN) else FALSE


def _answer(program: CompiledModel, model: CompiledModel, task: Task, seed: int) -> str:
    return judge(study_of(program, model, task, get_config("standard"), seed + 2), seed + 2).answer


def summary(found: pd.DataFrame) -> str:
    """How many are recovered, how long it takes, and all rows that are not."""
    columns = ["source", "name", "model", "found", "verdict", "why"]
    found = found.reindex(columns=list(dict.fromkeys([*found, *columns, "seconds"])))
    searched = found[found["found"].notna() & (found["model"] != "–")]
    parts = []
    for source, of in searched.groupby("source", sort=False):
        right = of["found"].isin([RECOVERED, ALIKE]).sum()
        seconds = of["seconds"]
        parts.append(
            f"`{source}`: {right} of {len(of)} recovered or not told apart, {(of['found'] == FALSE).sum()} false; "
            f"median {seconds.median():.0f} s, 95 % within {seconds.quantile(0.95):.0f} s."
        )
    left = found[found["found"] != RECOVERED]
    left = left.assign(why=left["why"].where(left["why"].notna(), left["error"]))
    cells = [
        ["–" if value is None or value != value else str(value) for value in row]
        for row in left[columns].to_numpy().tolist()
    ]
    return "\n\n".join([*parts, "Not recovered:", table(columns, cells)])


if __name__ == "__main__":
    main()
