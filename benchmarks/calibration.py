"""Measures the verdict on pairs of models whose relation is known and which the mapping was not fitted on.

python benchmarks/calibration.py --write docs/calibration.md    # measure, and write the page
python benchmarks/calibration.py --fit                          # fit anew: compare/verdict/verdict.json
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from page import table, write

from rasplens.compare.verdict.calibration.circuits import CIRCUITS, FITTED_ON, MEASURED_ON, NEW
from rasplens.compare.verdict.calibration.fit import Observation, fading, fit, invariance, measures, observations
from rasplens.compare.verdict.verdict import shipped

MAPPING = Path(__file__).parent.parent / "compare" / "verdict" / "verdict.json"

TO_REACH = {"auc": "≥ 0.99", "false_implements": "≤ 0.01", "recognised": "1"}

FADING = ("reverse", "same_as_first")
"""Circuits whose alternative programs are compressed more and more."""

SEED = 1
"""Another one than the mapping was fitted with."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    parser.add_argument("--fit", action="store_true", help="fit the mapping anew, and store it in the package")
    arguments = parser.parse_args()
    began = time.perf_counter()

    def progress(what: str, done: int) -> None:
        print(f"{time.perf_counter() - began:5.0f} s  {done:3}  {what}", file=sys.stderr, flush=True)

    if arguments.fit:
        calibration = fit(observations(FITTED_ON, 0, progress), {"circuits": list(FITTED_ON), "seed": 0})
        MAPPING.write_text(json.dumps(calibration.to_dict(), indent=1) + "\n")
        print(calibration)
        return
    found = observations(MEASURED_ON, SEED, progress)
    new = [one for one in found if one.circuit in NEW]
    parts = (_measures(found), _measures(new), _fading(), _invariance(found), _pairs(found))
    text = "\n\n".join(parts)
    print(text)
    if arguments.write is not None:
        write(arguments.write, "calibration", text)


def _measures(found: list[Observation]) -> str:
    measured = measures(found)
    names = {
        "auc": "ROC AUC, same against different, of the probability",
        "false_implements": "different pairs that are said to implement",
        "recognised": "same pairs that are said to implement",
    }
    rows = [[text, f"{measured[name]:.4f}", TO_REACH[name]] for name, text in names.items()]
    rows += [
        [f"ROC AUC of {name.removeprefix('auc_')} alone", f"{value:.4f}", ""]
        for name, value in measured.items()
        if name.startswith("auc_")
    ]
    n_same = sum(one.same for one in found)
    origin = shipped().provenance
    title = (
        f"{len(found)} pairs ({n_same} same, {len(found) - n_same} different) of "
        f"{', '.join(dict.fromkeys(one.circuit for one in found))}; the "
        f"mapping was fitted on {origin['pairs']} pairs of {', '.join(origin['circuits'])}"
    )
    return f"### {title}\n\n{table(['', 'measured', 'to reach'], rows)}"


def _fading() -> str:
    frame = pd.DataFrame([one.row() for one in fading(FADING, SEED)])
    axes = list(frame.columns[4:-2])
    rows = [
        [row["program"], row["model"], *(_score(row[name]) for name in (*axes, "probability")), row["verdict"]]
        for _, row in frame.iterrows()
    ]
    headings = ["program", "compressed to", *axes, "P(implements)", "verdict"]
    return f"### Programs that are compressed more and more\n\n{table(headings, rows)}"


def _invariance(found: list[Observation]) -> str:
    frame = invariance(found)
    axes = list(frame.columns[2:])
    rows = [[row["program"], row["model"], *(_number(row[axis]) for axis in axes)] for _, row in frame.iterrows()]
    title = "How far each axis of a disguised model is from that of the model itself (to reach: 1e-3)"
    return f"### {title}\n\n{table(['program', 'model', *axes], rows)}"


def _pairs(found: list[Observation]) -> str:
    frame = pd.DataFrame([one.row() for one in found])
    axes = list(frame.columns[4:-2])
    rows = []
    for _, row in frame.iterrows():
        scores = [_score(row[name]) for name in (*axes, "probability")]
        known = "same" if row["same"] else "different"
        rows.append([row["program"], row["model"], known, *scores, _said(row)])
    headings = ["program", "model", "known to be", *axes, "P(implements)", "verdict"]
    return f"### Every pair\n\n{table(headings, rows)}"


def _said(row: pd.Series) -> str:
    wrong = (row["verdict"] == "implements") != row["same"]
    return f"**{row['verdict']}**" if wrong else str(row["verdict"])


def _score(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0e}"


if __name__ == "__main__":
    assert set(FITTED_ON) | set(MEASURED_ON) <= set(CIRCUITS)
    main()
