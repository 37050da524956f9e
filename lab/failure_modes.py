"""Which measures notice that another mechanism decides, and which raise a false alarm.

python -m lab.failure_modes --write docs/methods.md

Each model holds a program beside another one with the same answers; see `lab/labelled/hidden_mechanisms.py`. Where
the program decides, a measure should be high. Where it does not, a measure should be low. The five axes are what
papers report of circuits: agreement of answers, interchange accuracy, attention patterns, ablation effects and
linear probes. A verdict rests on claims alone.

Source of the modes: the Causal Abstraction Evaluation study (arXiv 2607.00267).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lab.labelled.circuits import CIRCUITS, HARD, NOT_TOLD_APART
from lab.labelled.hidden_mechanisms import HIDDEN, hidden_pairs
from lab.labelled.labelled_pairs import LabelledPair, exact_pairs
from lab.page import as_csv, show, table
from lab.swept import add_arguments, chosen, swept
from rasplens.compare import compare
from rasplens.compare.axes import AXES
from rasplens.compare.claims.catalogue import CLAIMS
from rasplens.compare.claims.trials.judging import AT_LEAST
from rasplens.compare.config import PRESETS, Preset
from rasplens.compare.pairing.distinguishing import discriminate
from rasplens.compare.verdict.verdict import IMPLEMENTS, Verdict
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

MODES = {
    "disguised": "alone",
    "a dead mirror beside it": "dead copy",
    "90.0% of the logits": "leading copy, 90 %",
    "a backup beside it": "with a backup",
    "0.0% of the logits": "another program",
    "0.1% of the logits": "faint copy, 0.1 %",
    "10.0% of the logits": "faint copy, 10 %",
    "50.0% of the logits": "tie",
    "gate": "gate",
    "only a backup": "only a backup",
}
"""By the kind of labelled pairs the mode. In the first four the program decides, in the others it does not."""

CHOSEN = (
    "any", "repeated", "seen_before", "exceeded", "more", "same_as_first", "mirror", "first_other", "reverse",
    "shift", "histogram", "last", "swap", "pointed_at", "highest", "latest_a", "product", "lower", "earlier",
    "count",
)  # fmt: skip
"""Circuits of the table by default."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CHOSEN), help="circuits, with commas")
    parser.add_argument("--config", choices=list(PRESETS), default="quick", help="of the comparisons")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    add_arguments(parser)
    arguments = parser.parse_args()
    found = swept(jobs(arguments), arguments)
    if "error" in found and found["error"].notna().any():
        raise SystemExit("\n".join(found["error"].dropna()))
    if arguments.write is not None:
        each = found.drop(columns=["job", "seconds", "error"], errors="ignore")
        as_csv("failure-modes")("", list(each.columns), each.to_numpy().tolist())
    show(summary(found, arguments.config), arguments.write, "failure-modes")


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """One for each circuit."""
    for name in chosen(arguments.only, {**CIRCUITS, **HARD}, "circuit"):
        how = {"config": arguments.config, "seed": arguments.seed}
        yield Job("lab.failure_modes:measured", {"circuit": name, **how})


def measured(circuit: str, config: Preset, seed: int) -> list[Row]:
    """Every measure on the models of a circuit."""
    known = {**CIRCUITS, **HARD}[circuit]
    rows = [of_pair(one, config, seed) for one in exact_pairs(known, seed) if mode_of(one) is not None]
    return [*rows, *(of_pair(one, config, seed) for one in hidden_pairs(known, seed) if mode_of(one) is not None)]


def mode_of(pair: LabelledPair) -> str | None:
    """The mode of a labelled pair; None for one that the table leaves out."""
    if pair.same is None or pair.program in NOT_TOLD_APART:
        return None
    return MODES.get(pair.kind.removeprefix(HIDDEN).partition(", on ")[0])


def of_pair(pair: LabelledPair, config: Preset, seed: int) -> Row:
    """Of one model the score of each axis, whether the claims of each kind hold, and the verdict."""
    apart = discriminate(pair.reference.program, pair.alternative.program, pair.task, seed=seed)
    comparison = compare(
        pair.reference,
        pair.model,
        task=pair.task,
        config=config,
        seed=seed,
        vocabulary=pair.vocabulary,
        distinguishing={pair.alternative.output: apart},
    )
    return {
        "circuit": pair.circuit,
        "program": pair.program,
        "mode": mode_of(pair) or "",
        **{name: comparison.axis(name).score for name in AXES},
        **held_by_kind(comparison.verdict),
        "verdict": comparison.verdict.answer,
    }


def held_by_kind(verdict: Verdict) -> dict[str, float]:
    """Of each kind of claim whether all that were tested hold, 1 or 0; NaN where none was."""
    held = {}
    for kind in CLAIMS:
        own = [one for one in verdict.all_claims if isinstance(one.subject, kind.subjects) and one.is_measured]
        held[f"claims: {kind.name}"] = float(all(one.status == "holds" for one in own)) if own else float("nan")
    return held


def summary(found: pd.DataFrame, config: str) -> str:
    """The share of the models of each mode on which each measure is high, and of how many, if not of all."""
    modes = [mode for mode in MODES.values() if mode in set(found["mode"])]
    high = found.assign(verdict=(found["verdict"] == IMPLEMENTS).astype(float))
    measures = [name for name in (*AXES, *_kinds(found), "verdict") if high[name].notna().any()]
    rows = [[f"`{name}`", *(_share(high[high["mode"] == mode][name]) for mode in modes)] for name in measures]
    sizes = found.groupby("mode").size()
    title = f"### {len(found)} models of {found['circuit'].nunique()} circuits (`{config}`)"
    return f"{title}\n\n{table(['high on', *(f'{mode} ({sizes[mode]})' for mode in modes)], rows)}"


def _kinds(found: pd.DataFrame) -> list[str]:
    return [name for name in found if name.startswith("claims: ")]


def _share(scores: pd.Series) -> str:
    known = scores.dropna()
    share = f"{(known >= AT_LEAST).mean():.2f}" if len(known) else "–"
    return share if len(known) == len(scores) else f"{share} of {len(known)}"


if __name__ == "__main__":
    main()
