"""The programs of the library, each trained to order: do nodes compute them, and does a comparison say so?

python benchmarks/siit.py --write docs/siit.md                prints the table and puts it into the page
python benchmarks/siit.py --only induction,reverse            a few programs
python benchmarks/siit.py --programs interpbench --models siit        those of InterpBench, and their models
python benchmarks/siit.py --programs interpbench --shape narrow --models narrow       as narrow as its own
python benchmarks/siit.py --recipe steps=500,cycles=1 --models brief         trained in another way
"""

import argparse
import math
import time
from pathlib import Path

import pandas as pd
from page import table, write
from program_sets import SETS, SHAPES, compiled_task, shape_of
from swept import add_arguments, chosen, swept

from rasplens.compare import compare
from rasplens.compare.config import PRESETS, Preset
from rasplens.compare.verdict.calibration.labelled_pairs import SIIT_REACHES
from rasplens.compare.verdict.claims import UNTESTABLE
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT
from rasplens.errors import RaspLensError
from rasplens.learned import SIITRecipe, train_to_implement
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", choices=list(SETS), default="library", help="which set of programs")
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--shape", choices=SHAPES, default=SHAPES[0], help="of the models")
    parser.add_argument("--config", choices=list(PRESETS), default="quick", help="of the comparisons")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--recipe", type=_changes, default={}, help="what differs from the usual recipe")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    parser.add_argument("--models", type=Path, help="a folder to keep the models in, for benchmarks/methods.py")
    add_arguments(parser)
    arguments = parser.parse_args()
    folder = None if arguments.models is None else str(arguments.models)
    if folder is not None:
        arguments.models.mkdir(parents=True, exist_ok=True)
    asked = {
        "programs_of": arguments.programs,
        "shape": arguments.shape,
        "recipe": arguments.recipe,
        "config": arguments.config,
        "seed": arguments.seed,
        "folder": folder,
    }
    names = chosen(arguments.only, SETS[arguments.programs], "program")
    found = swept([Job("siit:trained", {"name": name, **asked}) for name in names], arguments)
    text = summary(found)
    print(text)
    if arguments.write is not None:
        write(arguments.write, "siit" if arguments.programs == "library" else "siit-interpbench", text)


def trained(
    programs_of: str,
    name: str,
    shape: str,
    recipe: dict[str, float],
    config: Preset,
    seed: int,
    folder: str | None,
) -> Row:
    """A program's nodes, what they reach, and what a comparison says."""
    try:
        task, reference = compiled_task(programs_of, name)
        began = time.perf_counter()
        architecture = shape_of(shape, name, reference)
        model = train_to_implement(reference, task, architecture, SIITRecipe(**recipe), seed)
    except RaspLensError as error:
        return {"left_out": str(error).partition(". ")[0]}
    seconds = time.perf_counter() - began
    if folder is not None:
        model.save(Path(folder) / f"{name}.safetensors")
    said, itself = (
        compare(reference, one, task=task, config=config, seed=seed).verdict for one in (model, reference)
    )
    return {
        "nodes": len(model.circuit),
        **model.accuracy.least,
        "verdict": said.answer,
        "variables": said.levels["variables"],
        "testable": itself.levels["variables"] != UNTESTABLE,
        "training": seconds,
    }


def _changes(text: str) -> dict[str, float]:
    """Fields of a recipe, such as `steps=500,weight_decay=0.01`."""
    parts = (part.split("=") for part in text.split(","))
    return {name: type(getattr(SIITRecipe(), name))(value) for name, value in parts}


def summary(found: pd.DataFrame) -> str:
    """A row a program; bold where an accuracy is reached."""
    headings = ["program", "nodes", *(f"{kind} (to reach: {least})" for kind, least in SIIT_REACHES.items())]
    headings += ["of answers that change", "verdict", "variables", "seconds"]
    done = found[found["nodes"].notna()]
    reached = (done[list(SIIT_REACHES)] >= list(SIIT_REACHES.values())).all(axis=1)
    rows = [
        [
            row["name"],
            f"{row['nodes']:.0f}",
            *(_share(row[kind], least) for kind, least in SIIT_REACHES.items()),
            _share(row["changed"]),
            row["verdict"],
            row["variables"],
            f"{row['training']:.0f}",
        ]
        for row in done.to_dict("records")
    ]
    middle = f"{done['training'].median():.0f} s a model, one processor each"
    total = f"{reached.sum()} of {len(done)} programs reach all three; median {middle}. {_said(done)}"
    missing = found[found["nodes"].isna()]
    why = missing["error"].where(missing["error"].notna(), missing.get("left_out"))
    left = [f"`{name}` is left out: {reason}." for name, reason in zip(missing["name"], why, strict=True)]
    return "\n\n".join([total, table(headings, rows), *left])


def _said(done: pd.DataFrame) -> str:
    """How often a comparison says what is known: that these models have the program's variables."""
    testable = done[done["testable"].astype(bool)]
    has_them = (testable["verdict"] == IMPLEMENTS) | (testable["variables"] == IMPLEMENTS)
    wrong, of_all = ((rows["verdict"] == NOT).sum() for rows in (testable, done))
    return (
        f"The variables of {len(testable)} programs can be tested on the compiled model itself: {has_them.sum()} "
        f"of these models are said to have them, {wrong} not to implement the program; "
        f"of all {len(done)}, {of_all} are."
    )


def _share(value: float, least: float = math.inf) -> str:
    if math.isnan(value):
        return "–"
    return f"**{value:.4f}**" if value >= least else f"{value:.4f}"


if __name__ == "__main__":
    main()
