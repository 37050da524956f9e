"""Measures verdicts on labelled pairs: models of which it is known whether they implement a program.

python -m lab.calibration --write docs/calibration-tables.md               # models in other weights
python -m lab.calibration --sources random --write docs/calibration-tables.md     # random programs
python -m lab.calibration --sources compressed distilled shuffled --write docs/calibration-tables.md
python -m lab.calibration --sources siit --config quick --write docs/calibration-tables.md
python -m lab.calibration --sources hidden --config quick --write docs/calibration-tables.md
python -m lab.calibration --sources hidden --as-part                       # as parts of models
python -m lab.calibration --only copy,shift --kinds itself untrained       # a few
"""

import argparse
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from lab.labelled.circuits import CIRCUITS, HARD, NOT_TOLD_APART, Circuit
from lab.labelled.hidden_mechanisms import HIDDEN, hidden_pairs
from lab.labelled.labelled_pairs import (
    ALTERNATIVE,
    LabelledPair,
    compressed_pairs,
    distilled_pairs,
    exact_pairs,
    near_pairs,
    shuffled_pairs,
    siit_pairs,
)
from lab.labelled.measure import by_group, is_told_apart, measures, observe, same_variables
from lab.labelled.random_programs import N_PROGRAMS, random_programs
from lab.page import Kept, as_csv, inline, show, table
from lab.swept import add_arguments, chosen, swept
from rasplens.compare.config import PRESETS, Preset
from rasplens.compare.verdict.verdict import IMPLEMENTS, UNKNOWN, Answer
from rasplens.errors import RaspLensError
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

Pairs = Callable[[Circuit, int], Iterable[LabelledPair]]

WANTED = {
    "false_implements": ("different pairs that are said to implement", "0"),
    "false_implements_most": ("the upper end of its exact 95 % interval", "≤ 1 %"),
    "recognised": ("same pairs that are said to implement", "≥ 98 %"),
    "false_does_not": ("same pairs that are said not to", "0"),
    "cannot_tell": ("pairs of which nothing can be said", ""),
}
"""Of each measure what it is, and what is to be reached."""

SOURCES: Mapping[str, Pairs] = {
    "exact": exact_pairs,
    "compressed": compressed_pairs,
    "distilled": distilled_pairs,
    "shuffled": shuffled_pairs,
    "random": near_pairs,
    "siit": siit_pairs,
    "hidden": hidden_pairs,
}
"""Models in other weights; compressed, distilled and trained ones; random programs, each with one that is near;
models that were trained to have a program's variables."""

KNOWN = {**CIRCUITS, **HARD}
"""The circuits by name."""

TRAINED = {"compressed", "distilled", "shuffled"}

ANSWERS: tuple[Answer, ...] = ("implements", "partly", "does not", "cannot tell")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", nargs="+", choices=list(SOURCES), default=["exact"], help="of models")
    parser.add_argument("--random", type=int, default=N_PROGRAMS, metavar="N", help="how many random programs")
    parser.add_argument("--config", choices=list(PRESETS), default="standard", help="of the comparisons")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--only", default="", help="circuits, with commas")
    parser.add_argument("--kinds", nargs="+", default=[], help="of models, such as 'disguised, with noise'")
    parser.add_argument("--as-part", action="store_true", help="ask whether a part of each model implements it")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    add_arguments(parser)
    arguments = parser.parse_args()
    found = swept(jobs(arguments), arguments)
    verdicts = found[found["model"].notna()] if "model" in found else found[:0]
    if not len(verdicts):
        raise SystemExit("No circuit has such pairs.")
    section = _section(set(arguments.sources))
    draw = {"siit pairs": siit_tables, "hidden mechanisms": hidden_tables}.get(section, tables)
    section += " as parts" * arguments.as_part
    keep = as_csv(section.replace(" ", "-")) if arguments.write else inline
    text = draw(verdicts, left_out(found), arguments.config, arguments.seed, keep)
    show(text, arguments.write, section)


def _section(sources: set[str]) -> str:
    """Of the page, by its markers."""
    if sources == {"random"}:
        return "random programs"
    if sources == {"siit"}:
        return "siit pairs"
    if sources == {"hidden"}:
        return "hidden mechanisms"
    return "trained pairs" if sources <= TRAINED else "calibration"


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """One for each circuit and source."""
    only = chosen(arguments.only, KNOWN, "circuit")
    for source in (name for name in SOURCES if name in arguments.sources):
        for name in range(arguments.random) if source == "random" else only:
            which = {"source": source, "circuit_name": str(name), "kinds": arguments.kinds}
            how = {"config": arguments.config, "seed": arguments.seed, "as_part": arguments.as_part}
            yield Job("lab.calibration:measured", {**which, **how})


def measured(
    source: str, circuit_name: str, config: Preset, seed: int, kinds: list[str], as_part: bool = False
) -> list[Row]:
    """The verdicts on the pairs of a circuit; then, if others could not be made, why."""
    if source == "random":
        circuit = next(itertools.islice(random_programs(int(circuit_name) + 1), int(circuit_name), None)).circuit()
    else:
        circuit = KNOWN[circuit_name]
    rows: list[Row] = []
    try:
        for labelled in SOURCES[source](circuit, seed):
            if not kinds or labelled.kind.removeprefix(ALTERNATIVE) in kinds:
                rows.append({"family": circuit.family, **observe(labelled, seed, config, as_part)})
    except RaspLensError as failed:  # a model that is not faithful enough to be known as the same
        rows.append({"circuit": circuit.name, "why": str(failed)})
    return rows


def left_out(found: pd.DataFrame) -> dict[str, str]:
    """By circuit and source, why pairs are missing: their model could not be made, or the job failed."""
    why = found["error"].where(found["error"].notna(), found.get("why"))
    missing = found[why.notna()]
    names = missing.get("circuit", missing["circuit_name"]).fillna(missing["circuit_name"])
    return {
        f"{name}, {source}": reason
        for name, source, reason in zip(names, missing["source"], why[why.notna()], strict=True)
    }


def tables(frame: pd.DataFrame, left_out: dict[str, str], config: str, seed: int, keep: Kept = inline) -> str:
    """Return the text to write: measures, families, pairs that are not right, those that are not told apart."""
    told = is_told_apart(frame)
    right = ((frame["verdict"] == IMPLEMENTS) == frame["same"]) & (frame["verdict"] != UNKNOWN)
    wrong = frame[told & ~right]
    parts = [
        _measures(frame, config, seed),
        _families(frame[told]),
        f"### Not right: {len(wrong)}",
        _listed(wrong, keep, "not-right"),
    ]
    parts += _not_told_apart(frame[~told & frame["same"].notna()], keep)
    unknown = frame[frame["same"].isna()]
    if len(unknown):
        parts += [
            f"### Unknown: {len(unknown)}",
            "Their distillation did not come far enough: they count for neither.",
            _listed(unknown, keep, "unknown"),
        ]
    return "\n\n".join([*parts, *_left_out(left_out)])


SAME_VARIABLES = {
    "recognised": ("models with a program's variables that are said to have them", "≥ 95 %"),
    "false_does_not": ("that are said not to implement it", "0"),
}
"""The measures of models that were trained by SIIT: what each counts, and what is to be reached."""


def siit_tables(frame: pd.DataFrame, left_out: dict[str, str], config: str, seed: int, keep: Kept = inline) -> str:
    """Return the text on models that were trained by SIIT: every pair, because little of them is known."""
    found = same_variables(frame)
    rows = [[text, f"{100 * found[name]:.2f} %", goal] for name, (text, goal) in SAME_VARIABLES.items()]
    trained = frame[frame["model"] != "itself"]
    title = (
        f"### {len(trained)} pairs of {frame['circuit'].nunique()} circuits; {found['models']} known to have the "
        f"variables (`{config}`, seed {seed})"
    )
    parts = [
        title,
        table(["", "measured", "to reach"], rows),
        _listed(trained, keep, "", ("answers", "variables", "routes")),
    ]
    return "\n\n".join([*parts, *_left_out(left_out)])


def hidden_tables(
    frame: pd.DataFrame, left_out: dict[str, str], config: str, seed: int, keep: Kept = inline
) -> str:
    """Return the text on models with a second mechanism: measures, by mode, and those that are not right."""
    modes = frame["model"].str.removeprefix(HIDDEN).str.replace(r", on .*", "", regex=True)
    told = is_told_apart(frame)
    gated = frame[told & (modes == "gate") & (frame["same"] == False)]  # noqa: E712
    named = [names_class(*one) for one in zip(gated["model"], map(json.loads, gated["claims"]), strict=True)]
    of_named = f"Of the {len(named)} models with a gate, {sum(named)} have its class of inputs named by a claim."
    labels = frame["same"].map({True: "same", False: "different"}).fillna("neither")
    counts = by_group(frame.assign(mode=modes, known=labels)[told], ["mode", "known"])
    said = [answer for answer in ANSWERS if answer in counts]
    rows = [[str(row[name]) for name in ("mode", "known", *said)] for _, row in counts.iterrows()]
    right = (frame["verdict"] == IMPLEMENTS) == frame["same"]
    wrong = frame[told & ~right & frame["same"].notna()]
    parts = [
        _measures(frame, config, seed),
        of_named,
        f"### By mode\n\n{table(['mode', 'known to be', *said], rows)}",
        f"### Not right: {len(wrong)}",
        _listed(wrong, keep, "not-right"),
        *_not_told_apart(frame[~told & frame["same"].notna()], keep),
    ]
    return "\n\n".join([*parts, *_left_out(left_out)])


def names_class(model: str, claims: Sequence[Mapping[str, str]]) -> bool:
    """Whether a claim on a model with a gate names all conditions that open it, as the model's kind has them."""
    opened_by = model.partition(" where ")[2].split(" and ")
    return any(all(words in _with_equals(claim["reason"]) for words in opened_by) for claim in claims)


def _with_equals(reason: str) -> str:
    """A reason, with what follows where it says that two positions are equal, and what stands at one of them."""
    follows = [
        f"{there} is {token}"
        for first, second in re.findall(r"(position \w+) and (position \w+) are equal", reason)
        for here, there in ((first, second), (second, first))
        for token in re.findall(rf"{here} is ('\w+'|\w+)", reason)
    ]
    return " and ".join([reason, *follows])


def _not_told_apart(apart: pd.DataFrame, keep: Kept) -> list[str]:
    if not len(apart):
        return []
    why = [f"`{name}`: {NOT_TOLD_APART[name]}" for name in NOT_TOLD_APART if name in set(apart["program"])]
    return [f"### Not told apart: {len(apart)}", *why, _listed(apart, keep, "not-told-apart")]


def _left_out(left_out: dict[str, str]) -> list[str]:
    rows = [[name, why] for name, why in left_out.items()]
    return ["### Left out", "Models that could not be made.", table(["circuit", "why"], rows)] if rows else []


def _measures(frame: pd.DataFrame, config: str, seed: int) -> str:
    measured = measures(frame)
    rows = [[text, f"{100 * measured[name]:.2f} %", goal] for name, (text, goal) in WANTED.items()]
    title = (
        f"### {len(frame)} pairs of {frame['circuit'].nunique()} circuits: {measured['same']} same, "
        f"{measured['different']} different (`{config}`, seed {seed})"
    )
    return f"{title}\n\n{table(['', 'measured', 'to reach'], rows)}"


def _families(frame: pd.DataFrame) -> str:
    labels = frame["same"].map({True: "same", False: "different"})
    counts = by_group(frame.assign(known=labels), ["family", "known"])
    said = [answer for answer in ANSWERS if answer in counts]
    rows = [[str(row[name]) for name in ("family", "known", *said)] for _, row in counts.iterrows()]
    return f"### By family\n\n{table(['family', 'known to be', *said], rows)}"


def _listed(frame: pd.DataFrame, keep: Kept, name: str, levels: Sequence[str] = ()) -> str:
    if not len(frame):
        return "None."
    rows = [
        [
            *(str(row[name]) for name in ("circuit", "program", "model")),
            {True: "same", False: "different"}.get(row["same"], ""),
            *(str(row[name]) for name in ("verdict", *levels)),
            str(row["reasons"]),
        ]
        for _, row in frame.iterrows()
    ]
    return keep(name, ["circuit", "program", "model", "known to be", "verdict", *levels, "why"], rows)


if __name__ == "__main__":
    main()
