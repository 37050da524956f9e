"""Measures what compression keeps of programs, in four parts, each with a place of its own on the page.

python -m lab.compression fast --write docs/compression.md                        # the published findings
python -m lab.compression starts --write docs/compression.md                      # one finding, six seeds
python -m lab.compression paper --write docs/compression.md                       # by the paper's recipe
python -m lab.compression sweep --write docs/compression.md --figure sweep.html   # every program
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lab.page import show, table
from lab.swept import add_arguments, swept
from rasplens.compile import CompiledModel, compile_program
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.learned import compress, compress_many
from rasplens.learned.compressor import CompressedModel
from rasplens.learned.compressor.evaluation import Evaluation, baseline, evaluate
from rasplens.learned.compressor.figures import draw_sweep
from rasplens.learned.compressor.recipe import CompressionRecipe, get_recipe
from rasplens.learned.compressor.sweep import sweep
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

FRAC_WIDTHS, SORT_WIDTHS = (2, 3, 4, 5, 6, 8), (4, 6, 8, 10, 14)

UNOPTIMISED = {"optimize": False}

AS_PUBLISHED = {"causal": False, "optimize": False, "bos": True}
"""How the paper's `frac_prevs` is compiled: without a causal mask, so that heads tell positions apart."""

DETAILS_OF = {"frac_prevs": (6, 4), "sort_unique": (8,)}
"""Widths of which more is shown; the first ones are those of the paper."""

SEEDS = range(6)
"""Random first maps from which the target of `sort_unique` is looked at."""

RANDOM = replace(get_recipe("fast"), fitted=0, rates=(1.0,))
"""First maps as in the paper."""

BRIEF = replace(get_recipe("fast"), steps=2_000, final_learning_rate=1e-4, trial=200)
"""For the sweep, where there are many runs."""

Setting = tuple[str, dict[str, object], Sequence[int], CompressionRecipe]

JOBS: dict[str, list[Setting]] = {
    "fast": [
        ("frac_prevs", AS_PUBLISHED, FRAC_WIDTHS, get_recipe("fast")),
        ("frac_prevs", {**AS_PUBLISHED, "causal": True}, (1, 2, 4, 6), get_recipe("fast")),
        ("frac_prevs", {}, (1, 2, 3, 5), get_recipe("fast")),
        ("sort_unique", UNOPTIMISED, SORT_WIDTHS, get_recipe("fast")),
        ("sort_unique", {}, SORT_WIDTHS, get_recipe("fast")),
        ("sort_unique", UNOPTIMISED, SORT_WIDTHS, RANDOM),
    ],
    "paper": [
        ("frac_prevs", AS_PUBLISHED, (6,), get_recipe("paper")),
        ("sort_unique", UNOPTIMISED, (8,), get_recipe("paper")),
    ],
}
"""Programs, how they are compiled, to which widths, and with which recipe."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["fast", "starts", "paper", "sweep"])
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    parser.add_argument("--figure", type=Path, help="where to draw the sweep")
    add_arguments(parser)
    arguments = parser.parse_args()
    parts = {"starts": starts, "sweep": every_program}
    text = parts.get(arguments.part, measured)(arguments)
    show(text, arguments.write, f"compression-{arguments.part}")


def measured(arguments: argparse.Namespace) -> str:
    """Programs of the paper, each with a recipe."""
    part = arguments.part
    jobs = [Job("lab.compression:finding", {"part": part, "number": i}) for i in range(len(JOBS[part]))]
    found = swept(jobs, arguments)
    return "\n\n".join(found["text"].fillna(found["error"]) if "text" in found else found["error"])


def starts(arguments: argparse.Namespace) -> str:
    """Return the table of `sort_unique`'s target, compressed from several random first maps."""
    job = Job("lab.compression:started", {"seeds": list(SEEDS), "d": DETAILS_OF["sort_unique"][0]})
    frame = swept([job], arguments)
    rows = [
        [f"{row.seed:.0f}", f"{row.token:.4f}", f"{row.layers:.3f}", f"{row.cosine:.3f}",
         _number(row.one_direction), _number(row.ordered)]
        for row in frame.itertuples()
    ]  # fmt: skip
    headings = [
        "seed",
        "answers right",
        "layers' cosine",
        "target_pos: cosine",
        "in one direction",
        "in order along it",
    ]
    return f"### sort_unique (optimize=False; random first maps only): d = 8, by seed\n\n{table(headings, rows)}"


def started(seeds: Sequence[int], d: int) -> list[Row]:
    """`sort_unique` from random first maps: a row a seed."""
    rows: list[Row] = []
    for model in compress_many(compiled_entry("sort_unique", UNOPTIMISED), [d], seeds, RANDOM):
        found = evaluate(model)
        target = found.variables.set_index("variable").loc["target_pos", ["cosine", "one_direction", "ordered"]]
        rows.append({"seed": model.seed, "token": found.token, "layers": found.cosine, **target.astype(float)})
    return rows


def every_program(arguments: argparse.Namespace) -> str:
    """Every program of the library, with a brief recipe."""
    jobs = [Job("lab.compression:swept_program", {"program": name}) for name in CATALOGUE]
    frame = swept(jobs, arguments)
    frame = frame[frame["error"].isna()].sort_values(["program", "d"], ignore_index=True)
    if arguments.figure is not None:
        draw_sweep(frame).write_html(arguments.figure, include_plotlyjs=True)
    return sweep_table(frame)


def compiled_entry(name: str, options: dict[str, object]) -> CompiledModel:
    """A program of the catalogue on its own inputs."""
    entry = CATALOGUE[name]
    return compile_program(entry.build(), entry.vocab, entry.max_len, **{**dict(entry.options), **options})


def finding(part: str, number: int) -> dict[str, str]:
    """One program at several widths, each with its time, beside principal components."""
    name, options, widths, recipe = JOBS[part][number]
    compiled, rows, models = compiled_entry(name, options), [], {}
    for d in widths:
        began = time.perf_counter()
        models[d] = compress(compiled, d, recipe)
        seconds = time.perf_counter() - began
        print(f"{name}: {models[d]} in {seconds:.0f} s", file=sys.stderr, flush=True)
        found, principal = evaluate(models[d]), evaluate(baseline(models[d]))
        rows.append(
            [f"{d}", f"{found.token:.4f}", f"{found.sequence:.4f}", f"{principal.token:.4f}",
             f"{found.output_loss:.2e}", f"{found.cosine:.3f}", f"{principal.cosine:.3f}", f"{seconds:.0f}"]
        )  # fmt: skip
    headings = ["d", "answers right", "inputs right", "answers right, PCA", "loss", "layers' cosine",
                "layers' cosine, PCA", "seconds"]  # fmt: skip
    n_directions = compiled.transformer.config.d_model
    how = ", ".join(f"{key}={value}" for key, value in options.items()) or "as compiled by default"
    how += "; random first maps only" if recipe == RANDOM else ""
    how += f"; the paper's recipe, {recipe.steps:,} steps" if recipe == get_recipe("paper") else ""
    text = f"### {name} ({how}): D = {n_directions}\n\n{table(headings, rows)}"
    if options:
        detail = of_features if name == "frac_prevs" else of_variables
        text += "".join("\n\n" + detail(models[d]) for d in DETAILS_OF[name] if d in models)
    return {"text": text}


def of_features(model: CompressedModel) -> str:
    """Return the table of every feature's fate."""
    features = evaluate(model).features
    rows = [
        [row.feature, f"{row.kept:.2f}", row.partner, f"{row.cosine:.2f}", row.fate]
        for row in features.itertuples()
    ]
    headings = ["feature", "read where it was written", "most alike", "cosine", "fate"]
    return f"Features at d = {model.d}:\n\n{table(headings, rows)}"


def of_variables(model: CompressedModel) -> str:
    """How every variable is written."""
    found: Evaluation = evaluate(model)
    rows = [
        [row.variable, f"{row.cosine:.3f}", f"{row.loss:.3f}", _number(row.one_direction), _number(row.ordered)]
        for row in found.variables.itertuples()
    ]
    headings = ["variable", "cosine", "squared error", "in one direction", "in order along it"]
    return f"Variables at d = {model.d}:\n\n{table(headings, rows)}"


def swept_program(program: str) -> list[Row]:
    """A program of the library at several widths."""
    found = sweep(compiled_entry(program, {}), recipe=BRIEF).assign(program=program)
    return json.loads(found.to_json(orient="records", double_precision=15))


def sweep_table(frame: pd.DataFrame) -> str:
    """A row per program: the knee, and what is kept at each width."""
    rows = []
    for name, own in frame.groupby("program"):
        knee = own.loc[own["is_knee"]]
        loss = own["output_loss"] + own["loss"]
        cells = [
            "; ".join(f"{d}: {value:{form}}" for d, value in zip(own["d"], values, strict=True))
            for values, form in (
                (own["token"], ".2f"), (loss, ".0e"), (own["cosine"], ".2f"), (own["pca_token"], ".2f")
            )
        ]  # fmt: skip
        rows.append([str(name), f"{own['D'].iloc[0]}", f"{knee['d'].item()}" if len(knee) else "-", *cells])
    headings = [
        "program",
        "D",
        "knee",
        "d: answers right",
        "d: loss",
        "d: layers' cosine",
        "d: answers right, PCA",
    ]
    note = f"{BRIEF.steps:,} steps from the best of {BRIEF.starts} first maps"
    return f"### Every program of the library, {note}\n\n{table(headings, rows)}"


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


if __name__ == "__main__":
    main()
