"""The programs of the library, each trained to order: do nodes compute them, and does a comparison say so?

python benchmarks/siit.py --write docs/siit.md                prints the table and puts it into the page
python benchmarks/siit.py --only induction,reverse            a few programs
"""

import argparse
import math
import sys
import time
from pathlib import Path

from page import table, write

from rasplens.compare import compare
from rasplens.compare.config import PRESETS
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry
from rasplens.errors import RaspLensError
from rasplens.learned import SIITModel, train_to_implement, use_all_cores
from rasplens.tasks import Task, compile_for, task_from_program

LONGER = 2
"""By so much inputs are longer than the catalogue's: of a few hundred inputs, those held out are too new."""

WANTED = {"behaviour": 0.995, "interchange": 0.99, "strict": 0.99}
"""What is to be reached."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--config", choices=list(PRESETS), default="quick", help="of the comparisons")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(CATALOGUE)
    if unknown := set(names) - set(CATALOGUE):
        raise SystemExit(f"There is no program {', '.join(sorted(unknown))}; there are {', '.join(CATALOGUE)}.")
    use_all_cores()
    rows = []
    for name in names:
        rows.append(row(name, CATALOGUE[name], arguments.config, arguments.seed))
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    headings = ["program", "nodes", *(f"{kind} (to reach: {least})" for kind, least in WANTED.items())]
    headings += ["of answers that change", "verdict", "seconds"]
    text = table(headings, rows)
    print(text)
    if arguments.write is not None:
        write(arguments.write, "siit", text)


def row(name: str, entry: Entry, config: str, seed: int) -> list[str]:
    """A program's nodes, what they reach, and what a comparison says."""
    try:
        task = longer_task(entry)
        reference = compile_for(task)
        began = time.perf_counter()
        model = train_to_implement(reference, task, seed=seed)
    except RaspLensError as error:
        return [name, "–", "–", "–", "–", "–", str(error).partition(". ")[0], "–"]
    seconds = time.perf_counter() - began
    said = compare(reference, model, task=task, config=config, seed=seed).verdict
    variables = f"{said.answer} (variables: {said.levels['variables']})"
    return [name, str(len(model.circuit)), *shares(model), variables, f"{seconds:.0f}"]


def longer_task(entry: Entry) -> Task:
    """A program's own answers on inputs somewhat longer than the catalogue's."""
    causal = dict(entry.options).get("causal", False)
    return task_from_program(entry.build(), entry.vocab, entry.max_len + LONGER, causal=causal)


def shares(model: SIITModel) -> list[str]:
    """The least of each accuracy over nodes, bold where it is reached."""
    least = model.accuracy.least
    bold = {kind: "**" if least[kind] >= wanted else "" for kind, wanted in WANTED.items()}
    cells = [f"{mark}{least[kind]:.4f}{mark}" for kind, mark in bold.items()]
    return [*cells, "–" if math.isnan(least["changed"]) else f"{least['changed']:.4f}"]


if __name__ == "__main__":
    main()
