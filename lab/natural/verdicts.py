"""Compares every naturally trained model with its programs, and holds the verdicts against the truth.

python -m lab.natural.verdicts                  # every model that is labelled; prints the table
python -m lab.natural.verdicts --seeds 0 --write docs/natural-models.md
"""

import argparse
import json
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pandas as pd

from lab.library import proofs, told
from lab.natural.mechanisms import Mechanism, get_mechanism
from lab.page import show, table
from lab.swept import add_arguments, swept
from rasplens.compare.config import PRESETS, Preset, get_config
from rasplens.compare.study import study_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, UNKNOWN, judge
from rasplens.compile import CompiledModel
from rasplens.model import load
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

TRUTH = Path(__file__).with_name("truth.json")

MODELS = Path("runs/natural")

MOST_LAYERS = 6
"""Programs that compile to more layers than this are left out: they are rivals that no model here has room for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2", help="of the models, with commas")
    parser.add_argument("--config", choices=list(PRESETS), default="quick", help="of the comparisons")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    add_arguments(parser)
    arguments = parser.parse_args()
    found = swept(jobs({int(seed) for seed in arguments.seeds.split(",")}, arguments.config), arguments)
    text = page(found, arguments.config)
    show(text, arguments.write, "verdicts")


def jobs(seeds: Collection[int], config: Preset) -> Iterator[Job]:
    """One for each model that is labelled and each of its programs."""
    for found in json.loads(TRUTH.read_text())["models"]:
        if found["seed"] in seeds and found["label"] != "not learned":
            what = {name: found[name] for name in ("model", "mechanism", "shape", "seed", "program", "label")}
            path = str(MODELS / f"{found['model']}.safetensors")
            yield Job("lab.natural.verdicts:compared", {**what, "path": path, "config": config}, [path])


def compared(mechanism: str, program: str, path: str, config: Preset, **labels: object) -> Row:
    """Return the verdict on a model and a program; no verdict on a program that no model here has room for."""
    compiled = _compiled(mechanism, program)
    if compiled.transformer.config.n_layers > MOST_LAYERS:
        return {"left_out": "a rival that no model here has room for"}
    study = study_of(compiled, load(path), _mechanism(mechanism).task, get_config(config), 0)
    said = judge(study, 0)
    row = {"verdict": said.answer, **said.levels, "reasons": " ".join(said.reasons[:2])}
    return row | proofs(said.all_claims) | {"layers": study.learned.n_layers}


def page(frame: pd.DataFrame, config: str) -> str:
    """The verdicts by truth, and every one that is wrong or open."""
    failed = frame[frame["error"].notna()]
    if "verdict" not in frame:
        raise SystemExit("\n".join(["No comparison gave a verdict.", *failed["error"].unique()]))
    frame = frame[frame["verdict"].notna()]
    known = frame[frame["label"].isin(["same", "different"])]
    right = (known["label"] == "same") == (known["verdict"] == IMPLEMENTS)
    right &= known["verdict"] != UNKNOWN
    wrong = ((known["label"] == "different") & (known["verdict"] == IMPLEMENTS)) | (
        (known["label"] == "same") & (known["verdict"] == NOT)
    )
    counts = frame.groupby(["label", "verdict"], sort=False).size().unstack(fill_value=0)
    rows = [[str(label), *map(str, row)] for label, row in zip(counts.index, counts.to_numpy(), strict=True)]
    by_seed = ", ".join(f"seed {seed} {of.mean():.1%}" for seed, of in right.groupby(known["seed"]))
    others = known[~right]
    listed = [
        [row["model"], row["program"], row["label"], str(row["verdict"]), str(row["reasons"])]
        for _, row in others.iterrows()
    ]
    return "\n\n".join(
        (
            f"{len(known)} comparisons of known truth (`{config}`): {right.mean():.1%} right ({by_seed}), "
            f"{wrong.mean():.1%} wrong (a false *implements* or *does not*), "
            f"{(known['verdict'] == UNKNOWN).mean():.1%} cannot tell.",
            table(["truth", *map(str, counts.columns)], rows),
            told(frame[frame["layers"] == 1], "claims on answers and edges of models of one layer", 50),
            "Not right:",
            table(["model", "program", "truth", "verdict", "why"], listed),
            *(f"`{row['model']}`, {row['program']}, is left out: {row['error']}." for _, row in failed.iterrows()),
        )
    )


@cache
def _mechanism(name: str) -> Mechanism:
    return get_mechanism(name)


@cache
def _compiled(mechanism: str, program: str) -> CompiledModel:
    return _mechanism(mechanism).compile(program)


if __name__ == "__main__":
    main()
