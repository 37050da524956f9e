"""Sites that training chooses: are they sharp, the same for every seed, and as good as those that are told?

python benchmarks/soft_sites.py --write docs/siit.md           prints the table and puts it into the page
python benchmarks/soft_sites.py --only induction --seeds 1     one program, once
"""

import argparse
from pathlib import Path

import pandas as pd
from page import show, table
from program_sets import compiled_task
from swept import add_arguments, chosen, swept

from rasplens.learned import learn_sites, ordinary_architecture, train_to_implement
from rasplens.learned.siit.circuit import variables_by_node
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

PROGRAMS = ("induction", "detect_pattern", "read_both", "histogram", "most_frequent")
"""Of the library."""

ACCURACIES = ["behaviour", "interchange", "strict", "within"]
"""Of a model that is trained with its nodes where training chose them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--seeds", type=int, default=2, help="how many for each program")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    add_arguments(parser)
    arguments = parser.parse_args()
    names = chosen(arguments.only, PROGRAMS, "program")
    jobs = [
        Job("soft_sites:searched", {"name": name, "seed": seed})
        for name in names
        for seed in range(arguments.seeds)
    ]
    text = summary(swept(jobs, arguments))
    show(text, arguments.write, "siit-sites")


def searched(name: str, seed: int) -> Row:
    """Where a program's parts went, and how well a model does that is trained with its nodes there."""
    task, compiled = compiled_task("library", name)
    shape = ordinary_architecture(compiled)
    sites = learn_sites(compiled, task, shape, seed=seed)
    model = train_to_implement(compiled, task, shape, seed=seed, circuit=sites.circuit)
    placed = "; ".join(f"{node}: {', '.join(held)}" for node, held in variables_by_node(sites.circuit).items())
    accuracies = {f"accuracy_{kind}": value for kind, value in model.accuracy.least.items()}
    return {"placed": placed, "least_share": sites.least_share, **sites.losses, **accuracies}


def summary(found: pd.DataFrame) -> str:
    """A row a program and seed."""
    headings = ["program", "seed", "sites", "least share", "loss under interchange", "strict loss"]
    headings += ACCURACIES
    columns = ["interchange", "strict", *(f"accuracy_{kind}" for kind in ACCURACIES)]
    rows, failed = [], []
    for row in found.to_dict("records"):
        if isinstance(row.get("placed"), str):
            named = [row["name"], str(row["seed"]), row["placed"], f"{row['least_share']:.3f}"]
            rows.append(named + [f"{row[column]:.4f}" for column in columns])
        else:
            failed.append(f"`{row['name']}` with seed {row['seed']} failed: {row['error']}.")
    return "\n\n".join([table(headings, rows), *failed])


if __name__ == "__main__":
    main()
