"""Findings on the learned models: the shipped ones, and published checkpoints where there are any.

python -m lab.findings --write docs/findings.md
python -m lab.findings --checkpoint sort=FILE --checkpoint compression=FILE --write docs/findings.md
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from lab.page import show, table
from rasplens.compare import Comparison, Ranking, rank, write_report
from rasplens.compare.verdict.verdict import LEVELS
from rasplens.compile import compile_program
from rasplens.learned import LearnedModel, import_checkpoint, load_pretrained
from rasplens.tasks import get_task

TASKS = ("induction", "sort", "copy", "compression")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    parser.add_argument("--checkpoint", action="append", default=[], help="TASK=FILE; say it again for more")
    parser.add_argument("--reports", type=Path, help="a folder for the report of every comparison")
    arguments = parser.parse_args()
    parts = []
    for name in TASKS:
        task = get_task(name)
        references = [
            compile_program(p, task.vocab, task.n_ctx, mask=task.visible) for p in task.programs.values()
        ]
        for origin, model in _models(name, arguments.checkpoint):
            began = time.perf_counter()
            ranking = rank(references, model, task=task)
            print(f"{name}, {origin}: {ranking.verdict} ({time.perf_counter() - began:.0f} s)", file=sys.stderr)
            parts.append(_section(name, origin, ranking))
            if arguments.reports is not None:
                arguments.reports.mkdir(parents=True, exist_ok=True)
                for comparison in ranking.comparisons:
                    path = arguments.reports / f"{name}_{origin.replace(' ', '_')}_{comparison.program}.html"
                    write_report(comparison, path)
    text = "\n\n".join(parts)
    show(text, arguments.write, "findings")


def _models(name: str, checkpoints: list[str]) -> list[tuple[str, LearnedModel]]:
    paths = [Path(path) for task, _, path in (given.partition("=") for given in checkpoints) if task == name]
    published = [(f"published checkpoint {path.stem}", import_checkpoint(path, get_task(name))) for path in paths]
    return [("trained here", load_pretrained(name)), *published]


def _section(name: str, origin: str, ranking: Ranking) -> str:
    rows = []
    for one in ranking.comparisons:
        axes = [_interval(axis.score, axis.low, axis.high) for axis in one.axes]
        rows.append([one.program, f"**{one.verdict.answer}**", *one.verdict.levels.values(), *axes])
    axis_names = [axis.name for axis in ranking.best.axes]
    blocks = [
        f"### {name}, {origin}: {ranking.verdict}",
        table(["program", "verdict", *(f"same {level}" for level in LEVELS), *axis_names], rows),
        *(_details(one) for one in ranking.comparisons),
    ]
    return "\n\n".join(block for block in blocks if block)


def _details(one: Comparison) -> str:
    """Its claims by what became of them, and which variables share a subspace."""
    lines, claims = [], one.verdict.claims
    for status, found in claims[claims["kind"] != "answers"].groupby("status", sort=False):
        said = [
            row.claim if np.isnan(row.score) else f"{row.claim} ({row.score:.2f})" for row in found.itertuples()
        ]
        lines.append(f"- {one.program}, *{status}*: {'; '.join(said)}.")
    overlaps = one.tables.get("overlaps")
    if overlaps is not None:
        groups = overlaps.groupby(["first", "second", "point"])[["shared", "correlation", "scale"]].mean()
        for (first, second, point), row in groups[groups["shared"] > 0.8].iterrows():
            alike = "."
            if not np.isnan(row["scale"]):
                alike = (
                    f"; what equal values write correlates at {row['correlation']:.2f} (scale {row['scale']:.2f})."
                )
            lines.append(
                f"- {one.program}: `{first}` and `{second}` share {row['shared']:.2f} at `{point}`{alike}"
            )
    return "\n".join(lines)


def _interval(score: float, low: float, high: float) -> str:
    return "–" if np.isnan(score) else f"{score:.2f} ({low:.2f}–{high:.2f})"


if __name__ == "__main__":
    main()
