"""Commands that hold a model against programs, and show what came out."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rasplens import RaspLensError
from rasplens.cli.app import command
from rasplens.cli.arguments import check_has_model, compare_config, declared_settings, destination, named
from rasplens.cli.options import (
    Activation,
    AsPart,
    Causal,
    Config,
    Device,
    Expected,
    Force,
    Heads,
    Inputs,
    Json,
    Learned,
    MaxLen,
    NoColor,
    Normalization,
    Output,
    Positions,
    Preset,
    Programs,
    Quiet,
    Scale,
    Seed,
    TaskName,
    Verbose,
    Vocab,
)


@command()
def run(
    ctx: typer.Context,
    task: TaskName,
    learned: Learned = None,
    n_heads: Heads = None,
    positions: Positions = None,
    activation: Activation = None,
    normalization: Normalization = None,
    attn_scale: Scale = None,
    expect: Expected = None,
    program: Programs = None,
    as_part: AsPart = False,
    device: Device = "cpu",
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    output: Output = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder to write to; runs/TASK by default.")
    ] = None,
    config: Config = Preset.standard,
    inputs: Inputs = None,
    seed: Seed = 0,
    verbose: Verbose = False,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Compile a task's program, verify it, compare the learned model with it, and write a report.

    Example: rasplens run sort --learned my_model.pt
    """
    began = time.perf_counter()  # what is imported below counts
    from rasplens.sources import Sizes, check_names, task_source

    declared = declared_settings(n_heads, positions, activation, normalization, attn_scale)
    check_has_model(learned is not None, declared, expect)
    check_names(task, program or [], [learned] if learned else [])
    own = task_source(task, Sizes(vocab, max_len, causal, output=output))
    from rasplens.sources.request import Request
    from rasplens.workflows.run import run_task

    to, chosen = destination(ctx, out or named("runs", own.name)), compare_config(config, inputs)
    models = () if learned is None else (learned,)
    asked = Request(own, models, tuple(program or ()), chosen, seed, as_part, declared, expect, device)
    run_task(asked, to, verbose=verbose, json=json, began=began)


@command()
def compare(
    ctx: typer.Context,
    task: TaskName,
    learned: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A model to compare; repeat the option for more.")
    ] = None,
    n_heads: Heads = None,
    positions: Positions = None,
    activation: Activation = None,
    normalization: Normalization = None,
    attn_scale: Scale = None,
    expect: Expected = None,
    program: Programs = None,
    as_part: AsPart = False,
    device: Device = "cpu",
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    output: Output = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder for one report per model and program.")
    ] = None,
    config: Config = Preset.standard,
    inputs: Inputs = None,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Say which of the programs each model implements, with the evidence, in one table.

    Example: rasplens compare copy --learned a.safetensors --learned b.safetensors
    """
    from rasplens.sources import Sizes, check_names, task_source

    declared = declared_settings(n_heads, positions, activation, normalization, attn_scale)
    check_has_model(bool(learned), declared, expect)
    check_names(task, program or [], learned or [])
    own = task_source(task, Sizes(vocab, max_len, causal, output=output))
    from rasplens.sources.request import Request
    from rasplens.workflows.compare import compare_and_show

    chosen, to = compare_config(config, inputs), None if out is None else destination(ctx, out)
    models, programs = tuple(learned or ()), tuple(program or ())
    compare_and_show(Request(own, models, programs, chosen, seed, as_part, declared, expect, device), to, json)


@command()
def explain(
    ctx: typer.Context,
    task: TaskName,
    learned: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The model; by default the shipped one.")
    ] = None,
    n_heads: Heads = None,
    positions: Positions = None,
    activation: Activation = None,
    normalization: Normalization = None,
    attn_scale: Scale = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    output: Output = None,
    budget: Annotated[
        float, typer.Option(min=0.1, metavar="S", help="Seconds after which no further program is judged.")
    ] = 60.0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A Python file for the program.")] = None,
    config: Config = Preset.standard,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Search the program that a model cannot be told from, and judge it on inputs that the search never saw.

    Nothing below --config standard confirms a program: quick counts as that.

    Example: rasplens explain induction --out found.py
    """
    from rasplens.sources import Sizes, task_source

    declared = declared_settings(n_heads, positions, activation, normalization, attn_scale)
    check_has_model(learned is not None, declared, None)
    own = task_source(task, Sizes(vocab, max_len, causal, output=output))
    from rasplens.sources.request import Request
    from rasplens.workflows.explain import explain_and_show

    models, chosen = () if learned is None else (learned,), compare_config(config, None)
    asked = Request(own, models, (), chosen, seed, as_part=False, declared=declared, expected=None)
    explain_and_show(asked, budget, None if out is None else destination(ctx, out), json)


@command()
def show(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Folders of runs, or comparison.json files; all of runs/ by default."),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="TOKENS", help="Show what both models attend to on an input, such as 'a b c'."
        ),
    ] = None,
    verbose: Verbose = False,
    json: Json = False,
    no_color: NoColor = False,
) -> None:
    """Show the verdict of a run again, or a table of several; no comparison is made anew.

    Example: rasplens show runs/sort --verbose
    """
    from rasplens.workflows.summary import show_attention, show_runs

    if tokens is not None:
        if verbose:
            raise RaspLensError("--input shows attention, --verbose all evidence; omit one of them.")
        show_attention(paths or [Path("runs")], tokens, json=json)
        return
    show_runs(paths or [Path("runs")], verbose=verbose, json=json)


@command()
def sweep(
    path: Annotated[Path, typer.Argument(metavar="JOBS", help="A TOML file with tables [[jobs]].")],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder to keep results in; runs/NAME by default.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many at once; by default as many as processors.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Do many comparisons, each once, and make one table of them; those that are done are kept.

    Example: rasplens sweep jobs.toml
    """
    from rasplens.workflows.sweep import sweep_and_show

    sweep_and_show(path, out or named("runs", path.stem), processes, json)
