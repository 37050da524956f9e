"""Every program of the library against itself and against a disguise of itself: is it recognised?

python benchmarks/library.py                                        prints the table
python benchmarks/library.py --write docs/calibration-tables.md     puts it between the page's markers
python benchmarks/library.py --only sort,reverse --config quick     a few
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from page import table, write

from rasplens.compare import compare
from rasplens.compare.config import PRESETS
from rasplens.compare.verdict.claims import UNTESTABLE
from rasplens.compare.verdict.verdict import IMPLEMENTS
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry
from rasplens.errors import RaspLensError
from rasplens.model import disguise
from rasplens.tasks import compile_for, task_from_program

CONDITION = 10.0
"""Of the oblique change of basis of a disguise."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--config", choices=list(PRESETS), default="standard", help="of the comparisons")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else list(CATALOGUE)
    if unknown := set(only) - set(CATALOGUE):
        raise SystemExit(f"There is no program {', '.join(sorted(unknown))}; there are {', '.join(CATALOGUE)}.")
    found = []
    for name in only:
        for row in rows(name, CATALOGUE[name], arguments.config, arguments.seed):
            print(*row, sep=" | ", file=sys.stderr, flush=True)
            found.append(row)
    text = summary(found, arguments.config)
    print(text)
    if arguments.write is not None:
        write(arguments.write, "library", text)


def rows(name: str, entry: Entry, config: str, seed: int) -> Iterator[list[str]]:
    """For the program and its disguise: what the verdict is, and how many claims were tested."""
    options = dict(entry.options)
    try:
        task = task_from_program(entry.build(), entry.vocab, entry.max_len, causal=options.get("causal", False))
        reference = compile_for(task, entry.build())
    except RaspLensError as error:
        yield [name, "–", "no task", "–", str(error).partition(". ")[0]]
        return
    disguised = disguise(reference, seed=seed, extra_width=3, basis="oblique", condition=CONDITION)
    for kind, model in (("itself", reference), ("disguised", disguised)):
        said = compare(reference, model, task=task, config=config, seed=seed).verdict
        tested = (said.claims["status"] != UNTESTABLE).sum()
        why = "" if said.answer == IMPLEMENTS else " ".join(said.reasons[:2])
        yield [name, kind, said.answer, f"{tested} of {len(said.claims)}", why]


def summary(found: list[list[str]], config: str) -> str:
    """How many are recognised, and all rows."""
    compared = [row for row in found if row[1] != "–"]
    right = sum(row[2] == IMPLEMENTS for row in compared)
    title = f"### The library against itself (`{config}`): {right} of {len(compared)} recognised"
    return f"{title}\n\n{table(['program', 'model', 'verdict', 'claims tested', 'why not'], found)}"


if __name__ == "__main__":
    main()
