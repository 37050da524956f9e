"""Compares every naturally trained model with its programs, and holds the verdicts against the truth.

python -m benchmarks.natural.verdicts                  # every model that is labelled; prints the table
python -m benchmarks.natural.verdicts --seeds 0 --write docs/natural-models.md
"""

import argparse
import json
import sys
from functools import cache
from pathlib import Path

import pandas as pd

from benchmarks.natural.mechanisms import Mechanism, get_mechanism
from benchmarks.page import table, write
from rasplens.compare.config import get_config
from rasplens.compare.evidence.collection import causal_tests
from rasplens.compare.models.pairing import pair
from rasplens.compare.verdict.program_claims import program_claims
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, UNKNOWN, verdict
from rasplens.compile import CompiledModel
from rasplens.model import load

TRUTH = Path(__file__).with_name("truth.json")

MODELS = Path("runs/natural")

MOST_LAYERS = 6
"""Programs that compile to more layers than this are left out: they are rivals that no model here has room for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2", help="of the models, with commas")
    parser.add_argument("--config", default="quick", help="of the comparisons")
    parser.add_argument("--rows", type=Path, help="one JSON line a comparison; what it has is not made again")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    seeds = {int(seed) for seed in arguments.seeds.split(",")}
    done = _read(arguments.rows, arguments.config)
    rows = []
    for found in json.loads(TRUTH.read_text())["models"]:
        if found["seed"] not in seeds or found["label"] == "not learned":
            continue
        if (before := done.get((found["model"], found["program"]))) is not None:
            rows.append(before)
            continue
        compiled = _compiled(found["mechanism"], found["program"])
        if compiled.transformer.config.n_layers > MOST_LAYERS:
            continue
        rows.append(_row(found, compiled, arguments.config))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        if arguments.rows is not None:
            with arguments.rows.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    text = page(pd.DataFrame(rows), arguments.config)
    print(text)
    if arguments.write is not None:
        write(arguments.write, "verdicts", text)


def page(frame: pd.DataFrame, config: str) -> str:
    """The verdicts by truth, and every one that is wrong or open."""
    known = frame[frame["label"].isin(["same", "different"])]
    right = (known["label"] == "same") == (known["verdict"] == IMPLEMENTS)
    right &= known["verdict"] != UNKNOWN
    wrong = ((known["label"] == "different") & (known["verdict"] == IMPLEMENTS)) | (
        (known["label"] == "same") & (known["verdict"] == NOT)
    )
    counts = frame.groupby(["label", "verdict"], sort=False).size().unstack(fill_value=0)
    rows = [[str(label), *map(str, row)] for label, row in zip(counts.index, counts.to_numpy(), strict=True)]
    others = known[~right]
    listed = [
        [row["model"], row["program"], row["label"], str(row["verdict"]), str(row["reasons"])]
        for _, row in others.iterrows()
    ]
    return "\n\n".join(
        (
            f"{len(known)} comparisons of known truth (`{config}`): {right.mean():.1%} right, {wrong.mean():.1%} "
            f"wrong (a false *implements* or *does not*), {(known['verdict'] == UNKNOWN).mean():.1%} cannot tell.",
            table(["truth", *map(str, counts.columns)], rows),
            "Not right:",
            table(["model", "program", "truth", "verdict", "why"], listed),
        )
    )


def _read(path: Path | None, config: str) -> dict[tuple[str, str], dict]:
    """The rows of an earlier run with this config, by model and program."""
    if path is None or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["model"], row["program"]): row for row in rows if row["config"] == config}


@cache
def _mechanism(name: str) -> Mechanism:
    return get_mechanism(name)


@cache
def _compiled(mechanism: str, program: str) -> CompiledModel:
    return _mechanism(mechanism).compile(program)


def _row(found: dict, compiled: CompiledModel, config: str) -> dict:
    model = load(MODELS / f"{found['model']}.safetensors")
    pairing = pair(compiled, model, _mechanism(found["mechanism"]).task, get_config(config), 0)
    said = verdict(program_claims(pairing, causal_tests(pairing, {}, 0), 0))
    return {
        "config": config,
        **{name: found[name] for name in ("model", "mechanism", "shape", "seed", "program", "label")},
        "verdict": said.answer,
        **said.levels,
        "reasons": " ".join(said.reasons[:2]),
        "claims": said.to_dict()["claims"],
    }


if __name__ == "__main__":
    main()
