"""Methods of circuit discovery on models whose circuit is known: the board of docs/methods.md.

python benchmarks/methods.py --write docs/methods.md --figure signed.html       the whole board
python benchmarks/methods.py --siit models --only sort,induction                with models of benchmarks/siit.py
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import plotly.express as px
from page import table, write
from siit import longer_task
from swept import add_arguments, chosen, swept

from rasplens.compare.discovery.cases import KINDS, siit_case
from rasplens.compare.discovery.methods.catalogue import METHODS
from rasplens.compare.discovery.problem import Protocol
from rasplens.compare.discovery.scoreboard import board, medians
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row
from rasplens.tasks import compile_for

DEFAULT = "default"

PROTOCOLS = {
    "zero ablation": Protocol(ablation="zero"),
    "mean ablation": Protocol(ablation="mean"),
    "signed": Protocol(absolute=False),
    "loss": Protocol(metric="loss"),
    "loss, signed": Protocol(metric="loss", absolute=False),
    "logit difference": Protocol(metric="logit_difference"),
    "one token changed": Protocol(corruption="one_token"),
    "without embeddings": Protocol(embeddings=False),
}
"""What is changed of the default, one thing at a time, but for the sign of the loss."""

VARIED = {name: METHODS[name] for name in ("exact", "eap", "eap-ig-inputs")}
"""Methods that are tried under every protocol."""

PUBLISHED = {"acdc": 0.959, "eap-ig-inputs": 0.910, "edge-pruning": 0.75, "eap": 0.20}
"""Median AUROC of edges on InterpBench's 16 cases (Gupta et al. 2024, arXiv 2407.14494);
`edge-pruning` is their subnetwork probing on edges."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs, with commas")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="of models")
    parser.add_argument("--siit", type=Path, help="the folder of stored models of benchmarks/siit.py")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    parser.add_argument("--figure", type=Path, help="where to draw what signed scores do")
    add_arguments(parser)
    arguments = parser.parse_args()
    found = swept(jobs(arguments), arguments)
    text = tables(found, arguments.seed)
    print(text)
    if arguments.write is not None:
        write(arguments.write, "methods", text)
    if arguments.figure is not None:
        signs(found).write_html(arguments.figure, include_plotlyjs=True, config={"displayModeBar": False})


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """One for each program and kind of model."""
    for name in chosen(arguments.only, CATALOGUE, "program"):
        for kind in arguments.kinds:
            stored = None
            if kind == "siit" and arguments.siit is not None:
                path = arguments.siit / f"{name}.safetensors"
                if not path.is_file():
                    continue
                stored = str(path)
            asked = {"name": name, "made": kind, "seed": arguments.seed, "stored": stored}
            yield Job("methods:scored", asked, [] if stored is None else [stored])


def scored(name: str, made: str, seed: int, stored: str | None) -> list[Row]:
    """All methods on a model, then some under other protocols."""
    try:
        task = longer_task(CATALOGUE[name])
        compiled = compile_for(task)
        case = siit_case(compiled, task, seed, stored) if made == "siit" else KINDS[made](compiled, task, seed)
    except RaspLensError as error:
        return [{"left_out": str(error).partition(". ")[0]}]
    protocols = {each: replace(protocol, seed=seed) for each, protocol in PROTOCOLS.items()}
    if case.vocabulary.columns is None:  # answers are numbers, for which there are no such metrics
        protocols = {name: one for name, one in protocols.items() if one.metric == "kl"}
    found = [board([case], METHODS, {DEFAULT: Protocol(seed=seed)}), board([case], VARIED, protocols)]
    return json.loads(pd.concat(found).to_json(orient="records", double_precision=15))


def tables(found: pd.DataFrame, seed: int) -> str:
    """What is written."""
    done = found[found["method"].notna()]
    default = done[done["protocol"] == DEFAULT]
    parts = [
        f"### {default['program'].nunique()} programs, {len(default.groupby(['program', 'kind']))} models",
        _by_kind(default, "auroc", seed),
        "### Other measures, medians over all models",
        _measures(default),
        "### Other protocols: median AUROC over all models",
        _protocols(done, seed),
        "### Beside published figures",
        _published(default, seed),
    ]
    if (missing := found[found["method"].isna()]).size:
        why = missing["error"].where(missing["error"].notna(), missing.get("left_out"))
        names = missing["name"] + ", " + missing["made"]
        parts += ["### Left out", table(["model", "why"], [list(row) for row in zip(names, why, strict=True)])]
    return "\n\n".join(parts)


def _by_kind(default: pd.DataFrame, measure: str, seed: int) -> str:
    found = medians(default, measure, ["method", "kind"], seed).set_index(["method", "kind"])
    kinds = list(dict.fromkeys(default["kind"]))
    rows = [
        [f"`{method}`", *(_interval(found.loc[(method, kind)]) for kind in kinds)]
        for method in dict.fromkeys(default["method"])
    ]
    return table(["method", *(f"{kind} ({_n(default, kind)})" for kind in kinds)], rows)


def _n(default: pd.DataFrame, kind: str) -> int:
    return default[default["kind"] == kind]["program"].nunique()


def _measures(default: pd.DataFrame) -> str:
    names = {
        "average_precision": "average precision",
        "base_rate": "base rate",
        "cpr": "CPR",
        "cmd": "CMD",
        "decoys": "decoys below",
        "method_seconds": "seconds",
    }
    middle = default.groupby("method", sort=False)[list(names)].median()
    rows = [[f"`{method}`", *(f"{row[name]:.3f}" for name in names)] for method, row in middle.iterrows()]
    return table(["method", *names.values()], rows)


def _protocols(done: pd.DataFrame, seed: int) -> str:
    found = medians(done, "auroc", ["protocol", "method"], seed).set_index(["protocol", "method"])
    rows = [
        [name, *(_interval(found.loc[(name, method)]) for method in VARIED)]
        for name in dict.fromkeys(done["protocol"])
    ]
    return table(["protocol", *(f"`{method}`" for method in VARIED)], rows)


def _published(default: pd.DataFrame, seed: int) -> str:
    own = medians(default[default["kind"] == "siit"], "auroc", ["method"], seed).set_index("method")
    rows = [
        [f"`{method}`", f"{theirs:.3f}", _interval(own.loc[method]) if method in own.index else "–"]
        for method, theirs in PUBLISHED.items()
    ]
    return table(["method", "InterpBench, 16 cases", "here, SIIT models of our library"], rows)


def signs(found: pd.DataFrame):
    """AUROC of EAP on each model by the size of effects, and by effects with their sign."""
    own = found[(found["method"] == "eap") & found["protocol"].isin(["loss", "loss, signed"])]
    ranked = own["protocol"].map({"loss": "by size", "loss, signed": "with its sign"})
    return px.strip(
        own.assign(ranked=ranked), x="kind", y="auroc", color="ranked", hover_name="program",
        labels={"auroc": "AUROC of EAP", "kind": "", "ranked": "effects ranked"},
        template="simple_white", height=380,
    )  # fmt: skip


def _interval(row: pd.Series) -> str:
    return "–" if row["n"] == 0 else f"{row['median']:.3f} [{row['low']:.2f}, {row['high']:.2f}]"


if __name__ == "__main__":
    main()
