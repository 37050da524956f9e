"""Every program of the library against itself and against a disguise of itself: is it recognised?

python -m lab.library                                        prints the table
python -m lab.library --write docs/calibration-tables.md     puts it between the page's markers
python -m lab.library --only sort,reverse --config quick     a few
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from lab.page import show, table
from lab.swept import add_arguments, chosen, swept
from rasplens.compare import compare
from rasplens.compare.claims.answers import AnswersOn, EachAnswer
from rasplens.compare.claims.claim import Claim
from rasplens.compare.claims.edges.questions import Route
from rasplens.compare.claims.trials.judging import UNTESTABLE
from rasplens.compare.config import PRESETS, Preset
from rasplens.compare.verdict.verdict import IMPLEMENTS
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry
from rasplens.errors import RaspLensError
from rasplens.model import disguise
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row
from rasplens.tasks import compile_for, task_from_program

PROVABLE = AnswersOn, EachAnswer, Route
"""What claims on answers and edges are about."""

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
        row = {"model": kind, "verdict": said.answer, "tested": f"{tested} of {len(said.claims)}", "why": why}
        yield row | proofs(said.all_claims)


def proofs(claims: Sequence[Claim]) -> dict[str, int]:
    """Of the claims on answers and edges that can be tested: how many are proved or refuted."""
    provable = [claim for claim in claims if isinstance(claim.subject, PROVABLE) and claim.status != UNTESTABLE]
    return {
        "provable": len(provable),
        "proved": sum(claim.is_proved for claim in provable),
        "by_row": sum(bool(claim.proof) and not claim.is_proved for claim in provable),
        "refuted": sum(bool(claim.counterexample) for claim in provable),
    }


def summary(found: pd.DataFrame) -> str:
    """How many are recognised, and all rows."""
    counts = ["provable", "proved", "by_row", "refuted"]
    found = found.reindex(columns=list(dict.fromkeys([*found, "model", "verdict", "tested", "why", *counts])))
    compared = found[found["model"] != "–"]
    right = int((compared["verdict"] == IMPLEMENTS).sum())
    why = found["why"].where(found["why"].notna(), found["error"])
    of_each = [
        f"{proved:.0f} of {provable:.0f}" if provable == provable else "–"
        for proved, provable in zip(found["proved"], found["provable"], strict=True)
    ]
    cells = zip(found["name"], found["model"], found["verdict"], found["tested"], of_each, why, strict=True)
    shown = [["–" if cell != cell or cell is None else str(cell) for cell in row] for row in cells]
    title = f"### The library against itself (`{found['config'].iloc[0]}`): {right} of {len(compared)} recognised"
    columns = ["program", "model", "verdict", "claims tested", "proved", "why not"]
    return f"{title}\n\n{told(found, 'claims on answers and edges', 90)}\n\n{table(columns, shown)}"


def told(found: pd.DataFrame, what: str, goal: int) -> str:
    """How many claims are proved, in full and row by row, and how many are refuted."""
    provable, proved, by_row, refuted = (
        int(found[name].sum()) for name in ("provable", "proved", "by_row", "refuted")
    )
    full, rows = ((proved + refuted + more) / max(1, provable) for more in (0, by_row))
    return (
        f"Of {provable} {what}, {proved} are proved, {by_row} more row by row, and {refuted} have a "
        f"counterexample ({full:.1%}, with rows {rows:.1%}; to reach: {goal} %)."
    )


if __name__ == "__main__":
    main()
