"""The two Tracr models of the paper on ACDC, compiled here: what its protocol does to its figures.

Its circuits are what ACDC leaves with zero ablation at the smallest threshold, as its public code says. So with
zero ablation ACDC is measured by itself; and most of what zero ablation breaks is the same on all inputs, so that
other inputs leave it as it is.

python -m lab.acdc_circuits --write docs/methods.md
"""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from lab.page import show, table
from rasplens.compare.discovery.cases import Case, compiled_case
from rasplens.compare.discovery.methods.catalogue import METHODS
from rasplens.compare.discovery.problem import Problem
from rasplens.compare.discovery.protocol import Protocol, Scoring
from rasplens.compare.discovery.scoring import score_edges
from rasplens.compile import programs
from rasplens.compile.rasp.language import tokens
from rasplens.tasks import Task, compile_for, task_from_program

TASKS: Mapping[str, Task] = {
    "tracr-reverse": task_from_program(programs.reverse(), (1, 2, 3), 3),
    "tracr-xproportion": task_from_program(
        programs.frac_prevs((tokens == "x").named("is_x")), "wxyz", 4, causal=True
    ),
}
"""With its vocabularies and lengths."""

PUBLISHED = {
    ("tracr-reverse", "zero"): {"acdc": 1.000, "edge-pruning": 0.692},
    ("tracr-reverse", "resample"): {"acdc": 0.200, "edge-pruning": 0.416},
    ("tracr-xproportion", "zero"): {"acdc": 1.000, "edge-pruning": 0.561},
    ("tracr-xproportion", "resample"): {"acdc": 0.600, "edge-pruning": 0.400},
}
"""AUROC of edges by the squared distance (Conmy et al. 2023, arXiv 2304.14997, table 2; `auc_tables.tex` of its
public code); `edge-pruning` stands beside its subnetwork probing."""

CIRCUITS = "circuit by zero ablation", "by the program", "of it what varies"
"""The definitions of a true circuit."""

STAIRS = Scoring(curve="stairs")

BREAKS = 1e-6
"""From which damage on, a squared distance, zero ablation of an edge breaks something."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    headings = ["model", "ablation", "method", "published", *CIRCUITS]
    rows = [row for name, task in TASKS.items() for row in scored(name, task)]
    text = table(headings, rows)
    show(text, arguments.write, "methods-acdc")


def scored(name: str, task: Task) -> list[list[str]]:
    """A row for each ablation and method: AUROC by three circuits, the curve as stairs below the thresholds."""
    compiled = compile_for(task, optimize=False)
    case = replace(compiled_case(compiled, task), transformer=compiled.transformer, decoys=())
    zero = _problem(case, "zero")
    broken = np.asarray(METHODS["exact"](zero)) > BREAKS
    circuits: list[Collection[str]] = [
        {edge for edge, breaks in zip(zero.graph.edges, broken, strict=True) if breaks},
        case.edges,
        case.varying,
    ]
    rows = []
    for ablation in ("zero", "resample"):
        problem = _problem(case, ablation)
        for method in ("acdc", "edge-pruning"):
            scores = METHODS[method](problem)
            found = [f"{score_edges(problem, scores, circuit, scoring=STAIRS).auroc:.3f}" for circuit in circuits]
            rows.append([name, ablation, f"`{method}`", f"{PUBLISHED[name, ablation][method]:.3f}", *found])
    sizes = [f"{len(circuit)} edges" for circuit in circuits]
    return [*rows, [name, "", f"of {len(zero.graph.edges)} edges", "", *sizes]]


def _problem(case: Case, ablation: str) -> Problem:
    return case.problem(Protocol(ablation=ablation, metric="l2"))


if __name__ == "__main__":
    main()
