"""Measures verdicts on labelled pairs: models of which it is known whether they implement a program.

python benchmarks/calibration.py --write docs/calibration-tables.md               # models in other weights
python benchmarks/calibration.py --sources random --write docs/calibration-tables.md     # random programs
python benchmarks/calibration.py --sources compressed distilled shuffled --write docs/calibration-tables.md
python benchmarks/calibration.py --only copy,shift --kinds itself untrained       # a few
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from page import table, write

from rasplens.compare.config import PRESETS
from rasplens.compare.verdict.calibration.circuits import CIRCUITS, HARD, NOT_TOLD_APART, Circuit
from rasplens.compare.verdict.calibration.labelled_pairs import (
    ALTERNATIVE,
    LabelledPair,
    compressed_pairs,
    distilled_pairs,
    exact_pairs,
    near_pairs,
    shuffled_pairs,
)
from rasplens.compare.verdict.calibration.measure import by_group, is_told_apart, measures, observe
from rasplens.compare.verdict.calibration.random_programs import N_PROGRAMS, random_programs
from rasplens.compare.verdict.verdict import IMPLEMENTS, UNKNOWN, Answer

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
}
"""Models in other weights; compressed, distilled and trained ones; random programs, each with one that is near."""

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
    parser.add_argument("--rows", type=Path, help="one JSON line a pair; what it has is not measured again")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    arguments = parser.parse_args()
    found = Rows(arguments.rows, arguments.config, arguments.seed)
    for circuit, source in _asked(arguments):
        _measure(circuit, source, arguments.kinds, found)
    if not found.rows:
        raise SystemExit("No circuit has such pairs.")
    text = tables(pd.DataFrame(found.rows), found.left_out, arguments.config, arguments.seed)
    print(text)
    if arguments.write is not None:
        write(arguments.write, _section(set(arguments.sources)), text)


def _section(sources: set[str]) -> str:
    """Of the page, by its markers."""
    if sources == {"random"}:
        return "random programs"
    return "trained pairs" if sources <= TRAINED else "calibration"


@dataclass(frozen=True)
class Source:
    """Where labelled pairs of a circuit come from.

    Attributes:
        name: For the file of rows.
        pairs: Makes them.
    """

    name: str
    pairs: Pairs


def _asked(arguments: argparse.Namespace) -> Iterator[tuple[Circuit, Source]]:
    known = {**CIRCUITS, **HARD}
    only = arguments.only.split(",") if arguments.only else list(known)
    if unknown := set(only) - set(known):
        raise SystemExit(f"There is no circuit {', '.join(sorted(unknown))}; there are {', '.join(known)}.")
    for name in (name for name in SOURCES if name in arguments.sources):
        if name == "random":
            circuits = (program.circuit() for program in random_programs(arguments.random))
        else:
            circuits = (known[circuit] for circuit in only)
        yield from ((circuit, Source(name, SOURCES[name])) for circuit in circuits)


class Rows:
    """The rows that were measured with one config and seed, in a file that a later run goes on from.

    The file has one JSON line a pair, and one for each circuit whose pairs are all measured or cannot be made.
    """

    def __init__(self, path: Path | None, config: str, seed: int) -> None:
        self.path, self.config, self.seed = path, config, seed
        self.rows: list[dict[str, object]] = []
        self.left_out: dict[str, str] = {}
        self._done: set[tuple[object, ...]] = set()
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                if (row["config"], row["seed"]) == (config, seed):
                    self._keep(row)

    def add(self, row: dict[str, object]) -> None:
        """Keeps a row, and writes it."""
        row = {**row, "config": self.config, "seed": self.seed}
        self._keep(row)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def has(self, *names: str) -> bool:
        """Whether a circuit of a source is done; or with the names of program and model, that pair."""
        return names in self._done

    def _keep(self, row: dict[str, object]) -> None:
        whole = row["source"], row["circuit"]
        if "verdict" in row:
            self._done.add((*whole, row["program"], row["model"]))
            self.rows.append(row)
        else:
            self._done.add(whole)
            if row["why"]:
                self.left_out[f"{row['circuit']}, {row['source']}"] = str(row["why"])


def _measure(circuit: Circuit, source: Source, kinds: list[str], found: Rows) -> None:
    """Adds the verdicts on the pairs of a circuit to those found."""
    here = {"source": source.name, "circuit": circuit.name}
    if found.has(*here.values()):
        return
    began, why = time.perf_counter(), ""
    pairs = iter(source.pairs(circuit, found.seed))
    while True:
        try:
            labelled = next(pairs, None)
        except RaspLensError as failed:  # a model that is not faithful enough to be known as the same
            labelled, why = None, str(failed)
        if labelled is None:
            break
        names = labelled.program, labelled.kind
        wanted = not kinds or labelled.kind.removeprefix(ALTERNATIVE) in kinds
        if not wanted or found.has(*here.values(), *names):
            continue
        row = observe(labelled, found.seed, PRESETS[found.config])
        found.add({**here, "family": circuit.family, **row})
        seconds = time.perf_counter() - began
        said = f"{' against '.join(names[::-1])}: {row['verdict']}"
        print(f"{seconds:5.0f} s  {len(found.rows):5}  {circuit.name}: {said}", file=sys.stderr, flush=True)
    if why:
        print(f"{circuit.name}, {source.name}: left out: {why}", file=sys.stderr, flush=True)
    if not kinds:
        found.add({**here, "why": why})


def tables(frame: pd.DataFrame, left_out: dict[str, str], config: str, seed: int) -> str:
    """What is written: the measures, the families, the pairs that are not right, those that are not told apart."""
    told = is_told_apart(frame)
    right = ((frame["verdict"] == IMPLEMENTS) == frame["same"]) & (frame["verdict"] != UNKNOWN)
    wrong = frame[told & ~right]
    parts = [
        _measures(frame, config, seed),
        _families(frame[told]),
        f"### Not right: {len(wrong)}",
        _listed(wrong),
    ]
    apart = frame[~told & frame["same"].notna()]
    if len(apart):
        why = [f"`{name}`: {why}" for name, why in NOT_TOLD_APART.items()]
        parts += ["### Not told apart", *why, _listed(apart)]
    unknown = frame[frame["same"].isna()]
    if len(unknown):
        parts += [
            "### Unknown",
            "Their distillation did not come far enough: they count for neither.",
            _listed(unknown),
        ]
    if left_out:
        rows = [[name, why] for name, why in left_out.items()]
        parts += ["### Left out", "Models that could not be made.", table(["circuit", "why"], rows)]
    return "\n\n".join(parts)


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


def _listed(frame: pd.DataFrame) -> str:
    if not len(frame):
        return "None."
    rows = [
        [
            *(str(row[name]) for name in ("circuit", "program", "model")),
            {True: "same", False: "different"}.get(row["same"], ""),
            str(row["verdict"]),
            str(row["reasons"]).replace("|", "\\|"),
        ]
        for _, row in frame.iterrows()
    ]
    return table(["circuit", "program", "model", "known to be", "verdict", "why"], rows)


if __name__ == "__main__":
    main()
