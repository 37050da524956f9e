"""The programs of the library, each trained to order: do nodes compute them, and does a comparison say so?

python -m lab.siit --write docs/siit.md                prints both tables and puts them into the page
python -m lab.siit --only induction,reverse            a few programs
python -m lab.siit --programs interpbench --models siit        those of InterpBench, and their models
python -m lab.siit --programs interpbench --shape narrow --models narrow       as narrow as its own
python -m lab.siit --shape LN --only induction,sort --write docs/siit.md       with layer norm
python -m lab.siit --recipe steps=500,cycles=1 --models brief         trained in another way
python -m lab.siit --processes 1 --threads 2       one model at a time, as on the command line
python -m lab.siit --compare siit --write docs/siit.md         models that are stored: compared, not trained
"""

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import torch

from lab.labelled.labelled_pairs import SIIT_REACHES
from lab.page import show, table
from lab.program_sets import SETS, SHAPES, compiled_task, shape_of
from lab.swept import RESULTS, add_arguments, chosen, swept
from rasplens.compare import compare
from rasplens.compare.claims.trials.judging import UNTESTABLE
from rasplens.compare.config import PRESETS, Preset
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT
from rasplens.errors import RaspLensError
from rasplens.learned import SIITRecipe, load_learned, train_to_implement
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

MODELS = RESULTS / "siit-models"
"""Where models are kept by default, those of each way to train in a folder of their own."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", choices=list(SETS), default="library", help="which set of programs")
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--shape", choices=SHAPES, default=SHAPES[0], help="of the models")
    parser.add_argument("--config", choices=list(PRESETS), default="quick", help="of the comparisons")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--recipe", type=_changes, default={}, help="what differs from the usual recipe")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--models", type=Path, metavar="FOLDER", help="where to put the models")
    which.add_argument("--compare", type=Path, metavar="FOLDER", help="the models of a folder; none is trained")
    add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.write is not None and arguments.recipe:
        parser.error("a page has the usual recipe: omit --write or --recipe")
    names = chosen(arguments.only, SETS[arguments.programs], "program")
    changes = [f"{name}={value}" for name, value in arguments.recipe.items()]
    usual = "-".join([arguments.programs, arguments.shape, *changes, f"seed={arguments.seed}"])
    folder = arguments.compare or arguments.models or MODELS / usual
    if arguments.compare is None:
        folder.mkdir(parents=True, exist_ok=True)
        found = swept(training_jobs(names, folder, arguments), arguments)
        show(training_summary(found), arguments.write, section(arguments))
        names = found["name"][found["nodes"].notna()].tolist()
    if missing := [name for name in names if not (folder / f"{name}.safetensors").is_file()]:
        of_kept = "Their results are kept without them: use another folder of --results"
        why = "Train them" if arguments.compare else of_kept
        raise SystemExit(f"{folder} lacks models of {', '.join(missing)}. {why}, or choose others by --only.")
    said = verdict_summary(swept(comparison_jobs(names, folder, arguments), arguments))
    show(said, arguments.write, f"{section(arguments)}-verdicts")


def section(arguments: argparse.Namespace) -> str:
    """The place of the table of training in its page; that of verdicts is behind it."""
    of_set = "siit" if arguments.programs == "library" else f"siit-{arguments.programs}"
    return of_set if arguments.shape == SHAPES[0] else f"{of_set}-{arguments.shape}"


def training_jobs(names: Sequence[str], folder: Path, arguments: argparse.Namespace) -> list[Job]:
    """One for each program."""
    asked = {
        "programs_of": arguments.programs,
        "shape": arguments.shape,
        "recipe": arguments.recipe,
        "seed": arguments.seed,
        "folder": str(folder),
    }
    return [Job("lab.siit:trained", {"name": name, **asked}) for name in names]


def comparison_jobs(names: Sequence[str], folder: Path, arguments: argparse.Namespace) -> list[Job]:
    """One for each program, whose model is in a folder."""
    asked = {"programs_of": arguments.programs, "config": arguments.config, "seed": arguments.seed}
    stored = {name: str(folder / f"{name}.safetensors") for name in names}
    return [
        Job("lab.siit:compared", {"name": name, "stored": path, **asked}, [path]) for name, path in stored.items()
    ]


def trained(programs_of: str, name: str, shape: str, recipe: dict[str, float], seed: int, folder: str) -> Row:
    """A program's nodes, and what they reach."""
    try:
        task, reference = compiled_task(programs_of, name)
        began = time.perf_counter()
        architecture = shape_of(shape, name, reference)
        model = train_to_implement(reference, task, architecture, SIITRecipe(**recipe), seed)
    except RaspLensError as error:
        return {"left_out": str(error).partition(". ")[0]}
    seconds = time.perf_counter() - began
    model.save(Path(folder) / f"{name}.safetensors")
    return {
        "nodes": len(model.circuit),
        "tested": len(model.circuit) - len(model.accuracy.untested),
        **model.accuracy.least,
        "training": seconds,
        "threads": torch.get_num_threads(),
    }


def compared(programs_of: str, name: str, stored: str, config: Preset, seed: int) -> Row:
    """Return the verdict on a stored model, and whether variables can be tested in the compiled one itself."""
    task, reference = compiled_task(programs_of, name)
    said, itself = (
        compare(reference, one, task=task, config=config, seed=seed).verdict
        for one in (load_learned(stored), reference)
    )
    return {"verdict": said.answer, **said.levels, "testable": itself.levels["variables"] != UNTESTABLE}


def _changes(text: str) -> dict[str, float]:
    """Fields of a recipe, such as `steps=500,weight_decay=0.01`."""
    parts = (part.split("=") for part in text.split(","))
    return {name: type(getattr(SIITRecipe(), name))(value) for name, value in parts}


def training_summary(found: pd.DataFrame) -> str:
    """A row a program; bold where an accuracy is reached. Where no node is tested, none is."""
    marks = SIIT_REACHES
    headings = ["program", "nodes tested", *(f"{kind} (to reach: {least})" for kind, least in marks.items())]
    headings += ["changed", "seconds"]
    done = found[found["nodes"].notna()]
    reached = (done[list(marks)].fillna(1.0) >= list(marks.values())).all(axis=1) & (done["tested"] > 0)
    rows = [
        [
            row["name"],
            f"{row['tested']:.0f} of {row['nodes']:.0f}",
            *(_share(_measured(row, kind), least) for kind, least in marks.items()),
            _share(row["changed"]),
            f"{row['training']:.0f}",
        ]
        for row in done.to_dict("records")
    ]
    threads = " or ".join(f"{n:.0f}" for n in sorted(done["threads"].unique()))
    middle = f"{done['training'].median():.0f} s a model (threads of each: {threads})"
    total = f"{reached.sum()} of {len(done)} programs reach all marks; median {middle}."
    missing = found[found["nodes"].isna()]
    why = missing["error"].where(missing["error"].notna(), missing.get("left_out"))
    left = [f"`{name}` is left out: {reason}." for name, reason in zip(missing["name"], why, strict=True)]
    return "\n\n".join([total, table(headings, rows), *left])


def verdict_summary(found: pd.DataFrame) -> str:
    """How often a comparison says what is known: that these models have the program's variables."""
    done = found[found["error"].isna()]
    if not len(done):
        return f"No comparison was made: {'; '.join(sorted(set(found['error'])))}"
    testable = done[done["testable"].astype(bool)]
    has_them = (testable["verdict"] == IMPLEMENTS) | (testable["variables"] == IMPLEMENTS)
    wrong, of_all = ((rows["verdict"] == NOT).sum() for rows in (testable, done))
    total = (
        f"The variables of {len(testable)} programs can be tested on the compiled model itself: {has_them.sum()} "
        f"of these models are said to have them, {wrong} not to implement the program; "
        f"of all {len(done)}, {of_all} are."
    )
    columns = ["name", "verdict", "answers", "variables", "routes"]
    rows = [list(row) for row in done[columns].itertuples(index=False)]
    failed = found[found["error"].notna()]
    left = [f"`{name}` is left out: {why}." for name, why in zip(failed["name"], failed["error"], strict=True)]
    return "\n\n".join([total, table(["program", *columns[1:]], rows), *left])


def _measured(row: Mapping[str, float], kind: str) -> float:
    """An accuracy; NaN of interchange where no node is tested, since nothing could change."""
    return math.nan if kind == "interchange" and not row["tested"] else row[kind]


def _share(value: float, least: float = math.inf) -> str:
    if math.isnan(value):
        return "–"
    return f"**{value:.4f}**" if value >= least else f"{value:.4f}"


if __name__ == "__main__":
    main()
