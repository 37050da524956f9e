"""Programs planted in larger models: is each said to be a part of its model, and do methods find it?

python -m lab.planted_programs --write docs/howto/planted-program.md                       verdicts and methods
python -m lab.planted_programs --parts verdicts --hosts text --only induction,histogram    some of it

Hosts are a language model trained here (`lab.text_model`), whose text has no control characters, so that
programs take these; and a model of GPT-2 small's shape with random weights (`lab.planted`).
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lab.known_circuits import interval
from lab.page import Kept, as_csv, inline, show, table
from lab.planted import GPT2_SMALL, random_weights
from lab.swept import add_arguments, chosen, swept
from lab.text_model import SPARE, loss, text_model
from rasplens.compare import compare
from rasplens.compare.discovery.cases import Case, planted_case
from rasplens.compare.discovery.methods.catalogue import METHODS
from rasplens.compare.discovery.protocol import Protocol, Setting
from rasplens.compare.discovery.scoreboard import board, medians
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, UNKNOWN
from rasplens.compile import rasp
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError
from rasplens.model import Transformer, causal_mask
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row
from rasplens.tasks import compile_for, task_from_program

HOSTS = "text", "gpt2"
"""The model of `lab.text_model`, and one with random weights in GPT-2 small's shape."""

MEASURED = (
    "count", "histogram", "induction", "offset", "detect_pattern", "most_frequent", "frac_prevs", "pair_balance",
    "next_larger", "slots", "read_both", "successor",
)  # fmt: skip
"""Programs of every kind in the library: counts, moves, means, comparisons, and several steps."""

SLOW = "acdc", "edge-pruning"
"""Methods that take an hour and more on a model as large."""

SETTING = Setting(Protocol(n_pairs=16))

HEADINGS = [
    "program", "in the language model", "without it", "heads named", "in GPT-2 small's shape", "without it, there",
]  # fmt: skip

OF_EACH = [
    "part",
    "host",
    "name",
    "verdict",
    "twin",
    "heads",
    "known heads",
    "loss before",
    "loss after",
    "minutes",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=["verdicts", "methods"], default=["verdicts", "methods"])
    parser.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS), help="of the verdicts")
    parser.add_argument("--only", default=",".join(MEASURED), help="programs, with commas")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    add_arguments(parser)
    arguments = parser.parse_args()
    text_model()
    found = swept(jobs(arguments), arguments)
    keep = as_csv("planted-programs") if arguments.write else inline
    if "verdicts" in arguments.parts:
        show(of_verdicts(found[found["part"] == "verdicts"], keep), arguments.write, "planted-verdicts")
    if "methods" in arguments.parts:
        show(of_methods(found[found["part"] == "methods"], arguments.seed), arguments.write, "planted-methods")


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """One for each program, and host or all methods."""
    for name in chosen(arguments.only, CATALOGUE, "program"):
        for host in arguments.hosts if "verdicts" in arguments.parts else ():
            yield Job("lab.planted_programs:verdicts", {"name": name, "host": host, "seed": arguments.seed})
        if "methods" in arguments.parts:
            yield Job("lab.planted_programs:scored", {"name": name, "seed": arguments.seed})


def host_of(name: str, seed: int) -> tuple[Transformer, list[int]]:
    """A host, and the tokens that its own text lacks."""
    if name == "text":
        return text_model(), SPARE
    mask = causal_mask(GPT2_SMALL.n_layers, GPT2_SMALL.n_ctx)
    return Transformer(GPT2_SMALL, random_weights(seed + 1), mask), list(range(1_000, 3_000, 37))


def planted_in(name: str, model: Transformer, spare: Sequence[int], seed: int) -> Case:
    """A program of the library among the parts of a host."""
    entry = CATALOGUE[name]
    program = rasp.causal(entry.build())
    task = task_from_program(program, entry.vocab, entry.max_len, causal=True)
    return planted_case(compile_for(task, program), task, seed, model, spare)


def verdicts(name: str, host: str, seed: int) -> Row:
    """Whether a program is said to be a part of the model that it is planted in, and of the model without it."""
    (model, spare), began = host_of(host, seed), time.process_time()
    try:
        case = planted_in(name, model, spare, seed)
    except RaspLensError as error:
        return {"part": "verdicts", "left_out": str(error).partition(". ")[0]}
    found, without = (
        compare(
            case.compiled, one, task=case.task, vocabulary=case.vocabulary, config="quick", seed=seed, as_part=True
        )
        for one in (case.transformer, model)
    )
    heads = found.tables.get("part_heads")
    named = [] if heads is None else [f"{one.variable} in {one.head}" for one in heads.itertuples()]
    known = [str(node) for node in case.circuit or () if node.is_head]
    minutes = (time.process_time() - began) / 60
    return {
        "part": "verdicts",
        "verdict": found.verdict.answer,
        "twin": without.verdict.answer,
        "heads": json.dumps(named),
        "known heads": json.dumps(known),
        "loss before": loss(model) if host == "text" else None,
        "loss after": loss(case.transformer) if host == "text" else None,
        "minutes": minutes,
    }


def scored(name: str, seed: int) -> list[Row]:
    """All methods on a program planted in the language model."""
    setting = replace(SETTING, protocol=replace(SETTING.protocol, seed=seed))
    methods = {each: method for each, method in METHODS.items() if each not in SLOW}
    try:
        found = board([planted_in(name, *host_of("text", seed), seed)], methods, {"default": setting})
    except RaspLensError as error:
        return [{"part": "methods", "left_out": str(error).partition(". ")[0]}]
    rows = json.loads(found.to_json(orient="records", double_precision=15))
    return [{"part": "methods", **row} for row in rows]


def of_verdicts(found: pd.DataFrame, keep: Kept) -> str:
    """A line for each program; above it, how many verdicts are right, and how much the host's loss moves."""
    there = found[found["verdict"].notna()]
    parts = []
    for host, rows in there.groupby("host", sort=False):
        counted = Counter(rows["verdict"])
        nots = int((rows["twin"] == NOT).sum())
        parts.append(
            f"`{host}`: of {len(rows)} planted programs {counted[IMPLEMENTS]} are said to be implemented, "
            f"{counted[UNKNOWN]} are left open, {len(rows) - counted[IMPLEMENTS] - counted[UNKNOWN]} are refused; "
            f"without them {nots} of {len(rows)} are refused. CPU minutes: median {rows['minutes'].median():.1f}, "
            f"at most {rows['minutes'].max():.1f}, both models together."
        )
    moved = (there["loss after"] / there["loss before"] - 1).abs().max()
    parts.append(f"The language model's loss on held-out text moves by {moved:.1g} of itself at most.")
    said = there.set_index(["host", "name"])
    lines = []
    for name in dict.fromkeys(there["name"]):
        cells = [f"`{name}`"]
        for host in HOSTS:
            row = said.loc[(host, name)] if (host, name) in said.index else None
            cells += ["–", "–"] if row is None else [row["verdict"], row["twin"]]
            if host == HOSTS[0]:
                cells.append("–" if row is None else _named(row))
        lines.append(cells)
    each = [[str(row[column]) for column in OF_EACH] for _, row in there.iterrows()]
    missing = found[found["verdict"].isna()].reindex(columns=["name", "host", "left_out"])
    left = [f"Left out: `{row['name']}`, {row['host']}: {row['left_out']}." for _, row in missing.iterrows()]
    return "\n\n".join([*parts, table(HEADINGS, lines), keep("verdicts", OF_EACH, each), *left])


def _named(row: pd.Series) -> str:
    """How many of the heads that are named for a variable are the planted ones."""
    named, known = (json.loads(row[column]) for column in ("heads", "known heads"))
    heads = {one.rpartition(" in ")[2] for one in named}
    right = heads & set(known)
    return f"{len(right)} of {len(heads)}" if heads else "none"


def of_methods(found: pd.DataFrame, seed: int) -> str:
    """The median of each measure over programs, a line for each method."""
    there = found[found["method"].notna()]
    measures = {"average_precision": "average precision", "auroc": "AUROC"}
    middle = {name: medians(there, name, ["method"], seed).set_index("method") for name in measures}
    order = [name for name in METHODS if name in set(there["method"])]
    lines = [[f"`{method}`", *(interval(middle[name].loc[method]) for name in measures)] for method in order]
    n = there["program"].nunique()
    return f"Medians over {n} programs, with 95 % intervals:\n\n{table(['method', *measures.values()], lines)}"


if __name__ == "__main__":
    main()
