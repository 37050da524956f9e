"""Every program of the library against itself and against a disguise of itself: is it recognised?

python -m lab.library                                        prints the table
python -m lab.library --write docs/calibration-tables.md     puts it between the page's markers
python -m lab.library --only sort,reverse --config quick     a few
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lab.page import show, table
from lab.swept import add_arguments, chosen, swept
from rasplens.compare import compare
from rasplens.compare.claims.trials.judging import UNTESTABLE
from rasplens.compare.config import PRESETS, Preset
from rasplens.compare.verdict.verdict import IMPLEMENTS
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry
from rasplens.errors import RaspLensError
from rasplens.model import disguise
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row
from rasplens.tasks import compile_for, task_from_program

CONDITION = 10.0
"""Of the oblique change of basis of a disguise."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--config", choices=list(PRESETS), default="standard", help="of the comparisons")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    add_arguments(parser)
    arguments = parser.parse_args()
    asked = {"config": arguments.config, "seed": arguments.seed}
    names = chosen(arguments.only, CATALOGUE, "program")
    text = summary(swept([Job("lab.library:rows", {"name": name, **asked}) for name in names], arguments))
    show(text, arguments.write, "library")


def rows(name: str, config: Preset, seed: int, entry: Entry | None = None) -> Iterator[Row]:
    """For the program and its disguise: what the verdict is, and how many claims were tested."""
    entry = entry or CATALOGUE[name]
    options = dict(entry.options)
    try:
        task = task_from_program(entry.build(), entry.vocab, entry.max_len, causal=options.get("causal", False))
        reference = compile_for(task, entry.build())
    except RaspLensError as error:
        yield {"model": "–", "verdict": "no task", "tested": "–", "why": str(error).partition(". ")[0]}
        return
    disguised = disguise(reference, seed=seed, extra_width=3, basis="oblique", condition=CONDITION)
    for kind, model in (("itself", reference), ("disguised", disguised)):
        said = compare(reference, model, task=task, config=config, seed=seed).verdict
        tested = (said.claims["status"] != UNTESTABLE).sum()
        why = "" if said.answer == IMPLEMENTS else " ".join(said.reasons[:2])
        tested_claims = f"{tested} of {len(said.claims)}"
        yield {"model": kind, "verdict": said.answer, "tested": tested_claims, "why": why}


def summary(found: pd.DataFrame) -> str:
    """How many are recognised, and all rows."""
    found = found.reindex(columns=list(dict.fromkeys([*found, "model", "verdict", "tested", "why"])))
    compared = found[found["model"] != "–"]
    right = int((compared["verdict"] == IMPLEMENTS).sum())
    why = found["why"].where(found["why"].notna(), found["error"])
    cells = zip(found["name"], found["model"], found["verdict"], found["tested"], why, strict=True)
    shown = [["–" if cell != cell or cell is None else str(cell) for cell in row] for row in cells]
    title = f"### The library against itself (`{found['config'].iloc[0]}`): {right} of {len(compared)} recognised"
    return f"{title}\n\n{table(['program', 'model', 'verdict', 'claims tested', 'why not'], shown)}"


if __name__ == "__main__":
    main()
