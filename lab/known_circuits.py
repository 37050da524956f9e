"""The jobs that benchmarks of methods share: models whose circuit is known, one job for each."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from lab.page import table
from lab.program_sets import SETS, compiled_task
from lab.swept import add_arguments, chosen
from rasplens.compare.discovery.cases import KINDS, Case, siit_case
from rasplens.compare.discovery.scoreboard import medians
from rasplens.sweeps import Job

OF_LIBRARY = [kind for kind in KINDS if kind != "planted"]
"""Kinds of models that any program has; one that is planted may see only the past (`lab.planted_programs`)."""


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Which models, on the command line of a benchmark, and how a sweep over them is done."""
    parser.add_argument("--programs", choices=list(SETS), default="library", help="which set of programs")
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=OF_LIBRARY, help="of models")
    parser.add_argument("--siit", type=Path, help="the folder of stored models of lab/siit.py")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    add_arguments(parser)


def model_jobs(function: str, arguments: argparse.Namespace, **how: Any) -> Iterator[Job]:
    """One for each program and kind of model; of stored ones, those that are there.

    Args:
        function: What is called, as `"module:function"`.
        arguments: The command line.
        how: What it is called with besides.
    """
    for name in chosen(arguments.only, SETS[arguments.programs], "program"):
        for kind in arguments.kinds:
            stored = None
            if kind == "siit" and arguments.siit is not None:
                path = arguments.siit / f"{name}.safetensors"
                if not path.is_file():
                    continue
                stored = str(path)
            asked = {"programs_of": arguments.programs, "name": name, "made": kind, "seed": arguments.seed}
            yield Job(function, {**asked, "stored": stored, **how}, [] if stored is None else [stored])


def known_case(programs_of: str, name: str, made: str, seed: int, stored: str | None) -> Case:
    """The model of a job.

    Raises:
        RaspLensError: If there is none of that kind.
    """
    task, compiled = compiled_task(programs_of, name)
    return siit_case(compiled, task, seed, stored) if made == "siit" else KINDS[made](compiled, task, seed)


def left_out(found: pd.DataFrame) -> list[str]:
    """A heading and a table of the models of which nothing is known, and why; nothing if there are none."""
    missing = found[found["method"].isna()]
    if missing.empty:
        return []
    why = missing["error"].where(missing["error"].notna(), missing.get("left_out"))
    names = missing["name"] + ", " + missing["made"]
    return ["### Left out", table(["model", "why"], [list(row) for row in zip(names, why, strict=True)])]


def by_kind(found: pd.DataFrame, measure: str, seed: int) -> str:
    """A table of medians: a row for each method, a column for each kind of model."""
    middle = medians(found, measure, ["method", "kind"], seed).set_index(["method", "kind"])
    n = found.groupby("kind", sort=False)["program"].nunique()
    rows = [
        [f"`{method}`", *(interval(middle.loc[(method, kind)]) for kind in n.index)]
        for method in dict.fromkeys(found["method"])
    ]
    return table(["method", *(f"{kind} ({count})" for kind, count in n.items())], rows)


def interval(row: pd.Series) -> str:
    """A median with its interval."""
    return "–" if row["n"] == 0 else f"{row['median']:.3f} [{row['low']:.2f}, {row['high']:.2f}]"
