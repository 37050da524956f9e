"""Models of which it is known what they implement: is a program found, and is it the truth?

python -m lab.explain                                    the library, compiled and disguised
python -m lab.explain --sources random --first 60        random programs
python -m lab.explain --sources siit natural hidden      trained models, and those with a second mechanism
python -m lab.explain --only sort,reverse --config quick a few
python -m lab.explain --write docs/explaining.md         puts the table between the page's markers
"""

import argparse
from collections.abc import Iterator, Sequence

import pandas as pd

from lab.known_models import SOURCES, KnownModel, add_source_arguments, jobs_of
from lab.page import Kept, as_csv, inline, show
from lab.swept import swept
from rasplens.compare import explain
from rasplens.compare.config import Preset, get_config
from rasplens.compare.explaining.explanation import Explanation
from rasplens.compare.study import study_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, UNKNOWN, judge
from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.sweeps.job import Row
from rasplens.tasks import Task

TRAINED = "natural", "siit"
"""Sources in which the known program's own verdict may be less than that it is implemented."""

BEST_FIRST = IMPLEMENTS, UNKNOWN, PARTLY, NOT
"""Verdicts."""

RECOVERED, ALIKE, OTHER, FALSE, NONE = "recovered", "not told apart", "another", "false", "none"
"""A program that the known one's model implements, or that is the same by tests without `compare`; one of which
neither model can be told; one that neither is known to be implemented nor known not to be; a wrong one; none."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", default="explaining", help="the table's place in the page")
    add_source_arguments(parser, "standard")
    arguments = parser.parse_args()
    found = swept(jobs_of("lab.explain:rows", arguments), arguments)
    keep = inline if arguments.write is None else as_csv(arguments.section)
    show(summary(found, keep), arguments.write, arguments.section)


def rows(source: str, name: str, config: Preset, seed: int) -> Iterator[Row]:
    """For each model of a name, what is found."""
    try:
        models = list(SOURCES[source].models(name))
    except RaspLensError as error:
        yield {"model": "–", "found": "no task", "why": str(error).partition(". ")[0]}
        return
    for known in models:
        found = explain(known.model, task=known.task, config=config, seed=seed, vocabulary=known.vocabulary)
        nearest = found.nearest
        said = None if nearest is None else nearest.verdict or nearest.searching
        yield {
            "model": known.kind,
            "is known": bool(known.same),
            "found": what(found, known, seed),
            "truth": _truth(known, config, seed) if source in TRAINED else None,
            "judged": len(found.tried),
            "took": found.seconds,
            "verdict": None if said is None else said.answer,
            "nodes": None if nearest is None else nearest.n_nodes,
            "tree": None if nearest is None else nearest.table,
            "why": found.ended if said is None else " ".join(said.reasons[:1]),
        }


def what(found: Explanation, known: KnownModel, seed: int) -> str:
    """Whether what is found is the truth: whether a known program's own compiled model is said to implement it."""
    if not found:
        open_ones = [one for one in found.tried if one.answer == UNKNOWN]
        alike = any(UNKNOWN in _answers(one.compiled, known.same, known.task, seed) for one in open_ones)
        return ALIKE if alike else NONE
    best = found.programs[0].compiled
    said = _answers(best, known.same, known.task, seed)
    if IMPLEMENTS in said:
        return RECOVERED
    at_best = ALIKE if UNKNOWN in said else OTHER
    if known.label is not None:
        return {"same": RECOVERED, "different": FALSE}.get(known.label(best), at_best)
    if IMPLEMENTS in _answers(best, known.different, known.task, seed):
        return FALSE
    return FALSE if known.same and at_best == OTHER else at_best


def _answers(program: CompiledModel, known: Sequence[CompiledModel], task: Task, seed: int) -> list[str]:
    """The verdicts on a program and compiled models of known ones."""
    return [
        judge(study_of(program, one, task, get_config("standard"), seed + 2), seed + 2).answer for one in known
    ]


def _truth(known: KnownModel, config: Preset, seed: int) -> str | None:
    """The best verdict on a model and programs that it is known to implement."""
    studies = [
        study_of(one, known.model, known.task, get_config(config), seed, known.vocabulary) for one in known.same
    ]
    return min((judge(one, seed).answer for one in studies), key=BEST_FIRST.index, default=None)


def summary(found: pd.DataFrame, keep: Kept = inline) -> str:
    """How many are recovered, how long it takes, and all rows that are not, printed or kept."""
    columns = ["source", "name", "model", "found", "truth", "verdict", "why"]
    found = found.reindex(columns=list(dict.fromkeys([*found, *columns, "is known", "took"])))
    searched = found[found["found"].notna() & (found["model"] != "–")]
    parts = [_counts(str(source), of) for source, of in searched.groupby("source", sort=False)]
    as_hoped = (found["found"] == RECOVERED) | ((found["found"] == NONE) & found["is known"].eq(False))
    left = found[~as_hoped]
    left = left.assign(why=left["why"].where(left["why"].notna(), left["error"]))
    cells = [
        ["–" if value is None or value != value else str(value) for value in row]
        for row in left[columns].to_numpy().tolist()
    ]
    return "\n\n".join([*parts, "Not recovered:", keep("", columns, cells)])


def _counts(source: str, of: pd.DataFrame) -> str:
    """A source in a sentence or two."""
    known = of[of["is known"].astype(bool)]
    right, seconds = known["found"].isin([RECOVERED, ALIKE]).sum(), of["took"]
    judged = known[known["truth"].notna()]
    alike = f"{(judged['truth'] == judged['verdict']).sum()} of {len(judged)} with the truth's own verdict"
    parts = [
        f"{right} of {len(known)} recovered or not told apart",
        *([alike] if len(judged) else []),
        f"{(of['found'] == FALSE).sum()} of {len(of)} false; median {seconds.median():.0f} s",
        f"95 % within {seconds.quantile(0.95):.0f} s",
    ]
    return f"`{source}`: {', '.join(parts)}."


if __name__ == "__main__":
    main()
