"""Error rates of the statistical tests of circuits: on circuits for which a null hypothesis holds, and on true
ones.

python -m lab.circuit_tests --write docs/methods.md

Null circuits, for each criterion: the true circuit with random edges beside it (equivalence, independence), an
edge that passes nothing added to it (minimality), random circuits of its size (sufficiency), and such that have
no edge of it (partial necessity). Power: the true circuit; for equivalence that circuit without one of its edges;
for independence without the edges of one of its paths, from an embedding to the logits. With the rest ablated,
such a path alone tells something of the answers, or nothing at all. Where it tells nothing, the null hypothesis
holds, and that it is kept counts as an error here: the power is not overestimated.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from lab.page import show, table
from lab.program_sets import SETS, compiled_task
from lab.swept import add_arguments, chosen, swept
from rasplens.compare.discovery import hypothesis_tests as tests
from rasplens.compare.discovery.cases import disguised_case
from rasplens.compare.discovery.protocol import Protocol
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

PROGRAMS = "count", "detect_pattern", "histogram", "induction", "slots"

LEVEL = 0.05

N_RANDOM = 199
"""Random circuits and permutations of a test here; each test is made by itself, at the level."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PROGRAMS), help="programs, with commas")
    parser.add_argument("--samples", type=int, default=10, help="samples of pairs of inputs, for each program")
    parser.add_argument("--circuits", type=int, default=20, help="null circuits for each of them")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    add_arguments(parser)
    arguments = parser.parse_args()
    text = summary(swept(jobs(arguments), arguments))
    show(text, arguments.write, "circuit-tests")


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """One for each program and sample of pairs."""
    for name in chosen(arguments.only, SETS["library"], "program"):
        for seed in range(arguments.samples):
            yield Job("lab.circuit_tests:rejections", {"name": name, "seed": seed, "n": arguments.circuits})


def rejections(name: str, seed: int, n: int) -> list[Row]:
    """Of each criterion, how often its null hypothesis is rejected where it holds, and where it does not."""
    task, compiled = compiled_task("library", name)
    case = disguised_case(compiled, task, seed)
    problem = case.problem(Protocol(metric="logit_difference", seed=seed))
    graph, truth = problem.graph, problem.graph.mask_of(case.varying)
    random = np.random.default_rng(seed)
    size = int(truth.sum())
    references = tests.random_circuits(graph, size, N_RANDOM, seed)
    outside = tests.random_circuits(graph, size, N_RANDOM, seed, ~truth)
    nulls = tests.random_circuits(graph, size, n, seed + 10_000)
    null_outside = tests.random_circuits(graph, size, n, seed + 20_000, ~truth)
    left_out = tests.random_paths(graph, n, seed + 30_000, truth)
    rows = []
    for i in range(n):
        extra = random.choice(np.flatnonzero(~truth), random.integers(1, max(2, size)), replace=False)
        superset, one = truth.copy(), truth.copy()
        superset[extra] = True
        one[extra[0]] = True
        smaller = truth.copy()
        smaller[random.choice(np.flatnonzero(truth))] = False
        paths = tests.random_paths(graph, N_RANDOM, seed + 100 * (i + 1))
        minimal = tests.minimality(problem, one, paths, seed)
        rows.append(
            {
                "null equivalence": tests.equivalence(problem, superset),
                "null independence": tests.independence(problem, superset, N_RANDOM, seed + i),
                "null minimality": minimal[graph.edges[extra[0]]],
                "null sufficiency": tests.sufficiency(problem, nulls[i], references),
                "null partial necessity": tests.partial_necessity(problem, null_outside[i], outside),
                "power equivalence": tests.equivalence(problem, smaller),
                "power independence": tests.independence(problem, truth & ~left_out[i], N_RANDOM, seed + i),
                "power minimality": max(p for edge, p in minimal.items() if edge in case.varying),
            }
        )
    whole = {
        "power sufficiency": tests.sufficiency(problem, truth, references),
        "power partial necessity": tests.partial_necessity(problem, truth, outside),
    }
    return [*rows, whole]


def summary(found: pd.DataFrame) -> str:
    """A row a criterion: how often it was rejected, with exact 95 % intervals."""
    rows = []
    for name in (criterion.name for criterion in tests.CRITERIA):
        cells = [name]
        for kind in ("null", "power"):
            p = found[f"{kind} {name}"].dropna()
            share = binomtest(int((p <= LEVEL).sum()), len(p))
            interval = share.proportion_ci()
            cells.append(f"{share.statistic:.3f} [{interval.low:.3f}, {interval.high:.3f}], {len(p)}")
        rows.append(cells)
    headings = ["criterion", f"rejected where it holds (≤ {LEVEL})", "rejected where it does not (≥ 0.9)"]
    n = found["name"].nunique()
    text = f"Level {LEVEL}, each test alone, {N_RANDOM} draws; disguises of {n} programs. Share, interval, number."
    failed = found["error"].dropna()
    more = [f"Failed: {error}" for error in failed.unique()]
    return "\n\n".join([text, table(headings, rows), *more])


if __name__ == "__main__":
    main()
