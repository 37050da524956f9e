"""The command line."""

import io
import os
import re
import sys
import time
import warnings
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from rasplens import RaspLensError, __version__

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Compile RASP programs to transformers with known circuits, and compare learned models with them.",
    epilog="Exit codes: 0 done, whatever the verdict; 1 a bug in RASPLens; 2 an error that you can fix; 130 "
    "Ctrl-C.",
)


class _SaidOnce(typer.core.TyperCommand):
    """A command that refuses repeated options, except those that take several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parsed: Any = self.make_parser(ctx).parse_args(list(args))
        said: list[Any] = parsed[2]
        for option in said:
            is_single = option.param_type_name == "option" and not (option.multiple or option.is_flag)
            if is_single and said.count(option) > 1 and not ctx.resilient_parsing:
                several = " `rasplens compare` takes several models." if option.name == "learned" else ""
                raise RaspLensError(f"{ctx.command_path} takes one {option.opts[0]}; got several.{several}")
        return super().parse_args(ctx, args)


command = partial(app.command, cls=_SaidOnce)

FLAG = ""
"""The metavar in help of an option that takes no value."""

LARGEST = 2**63 - 1
"""The largest seed: results keep it as a number of 64 bits."""

MOST, MOST_MODELS = 10_000_000, 10_000
"""The most inputs and models that a command takes; more would fill the memory without a message."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

OUTPUTS = "out", "export"
"""Parameters of commands that name what is written; the others name what is read."""

AFTER = "Run the same command again: training resumes where it stopped, anything else starts over."
"""The message after Ctrl-C."""


def _be_quiet(is_quiet: bool) -> None:
    from rasplens import terminal

    terminal.err.quiet = is_quiet


def _without_colour(is_plain: bool) -> None:
    if is_plain:
        os.environ["NO_COLOR"] = "1"


class Preset(StrEnum):
    """The presets of a comparison, by name; `rasplens.compare.PRESETS` says what they mean."""

    quick = "quick"
    standard = "standard"
    thorough = "thorough"


class PartialName(StrEnum):
    """The choices for inputs on which a program is undefined."""

    forbid = "forbid"
    allow = "allow"


class PositionsName(StrEnum):
    """TransformerLens's positional_embedding_type."""

    standard = "standard"
    shortformer = "shortformer"
    rotary = "rotary"
    none = "none"


class ActivationName(StrEnum):
    """TransformerLens's act_fn."""

    relu = "relu"
    gelu = "gelu"
    gelu_new = "gelu_new"
    silu = "silu"


class NormalizationName(StrEnum):
    """TransformerLens's normalization_type, where weights do not tell it."""

    none = "none"
    LNPre = "LNPre"


TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="induction, sort, copy, compression or compression_notebook; a program of the library, such as "
        "histogram; your own task or program, FILE.py:NAME (FILE.py is run) or FILE.rasp; or data, "
        "FILE.jsonl or FILE.csv.",
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help="A task, for its program; a program of the library; or your own, FILE.py:NAME (FILE.py is run) or "
        "FILE.rasp.",
    ),
]
ProgramName = Annotated[
    str | None,
    typer.Option("--program", metavar="NAME", help="Which of the task's programs; the first by default."),
]
Learned = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Your own model: a RASPLens file, a legacy TransformerLens .pt, or a Hugging Face folder. By "
        "default the shipped model.",
    ),
]
Heads = Annotated[
    int | None,
    typer.Option("--n-heads", min=1, metavar="N", help="Heads per layer, if your model's file does not say."),
]
Positions = Annotated[
    PositionsName | None,
    typer.Option("--positions", help="How your model encodes positions, if its file does not say."),
]
Activation = Annotated[
    ActivationName | None,
    typer.Option("--activation", help="The activation of your model's neurons; relu by default."),
]
Normalization = Annotated[
    NormalizationName | None,
    typer.Option("--normalization", help="LNPre for layer norm without weights; none by default."),
]
Scale = Annotated[
    float | None,
    typer.Option(
        "--attn-scale",
        min=0,
        metavar="X",
        help="What attention scores are divided by; the square root of d_head by default.",
    ),
]
Expected = Annotated[
    float | None,
    typer.Option(
        "--expect", min=0, max=1, metavar="SHARE", help="Stop if your model gets fewer of the answers right."
    ),
]
Json = Annotated[bool, typer.Option("--json", metavar=FLAG, help="Print JSON for scripts, and no progress.")]
Quiet = Annotated[bool, typer.Option("--quiet", metavar=FLAG, help="Show no progress.", callback=_be_quiet)]
NoColor = Annotated[
    bool,
    typer.Option(
        "--no-color", metavar=FLAG, help="Print without colours, as NO_COLOR=1 does.", callback=_without_colour
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", metavar=FLAG, help="Replace existing files, except those that the command reads."),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", metavar=FLAG, help="Print all evidence, not only the verdict.")
]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST, metavar="N", help="The random seed.")]
Config = Annotated[Preset, typer.Option(help="How thorough a comparison is: faster, or more precise.")]
Inputs = Annotated[
    int | None,
    typer.Option(
        min=50, max=MOST, metavar="N", help="How many held-out inputs to compare on; by default as --config says."
    ),
]
Vocab = Annotated[
    str | None, typer.Option(metavar="TOKENS", help="For your own program: its tokens, such as a,b,c or 0..9.")
]
MaxLen = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="For your own program: the longest sequence.")
]
Output = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which s-op of FILE.rasp; by default the last one.")
]
Undefined = Annotated[
    PartialName,
    typer.Option(
        "--partial",
        help="If a program is undefined on some inputs: forbid it, or allow it and refuse to answer there.",
    ),
]
Programs = Annotated[
    list[str] | None,
    typer.Option(
        "--program",
        metavar="NAME",
        help="One of the task's programs, FILE.py:NAME or FILE.rasp; repeat the option for alternatives.",
    ),
]
Causal = Annotated[
    bool, typer.Option("--causal", metavar=FLAG, help="For your own program: positions see only the past.")
]
AsPart = Annotated[
    bool,
    typer.Option(
        "--as-part",
        metavar=FLAG,
        help="The program describes a part of the model: judged by effect, where the model gives its answers.",
    ),
]

Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help="Where a language model runs, by its name in torch: cpu, cuda, mps …"
    ),
]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool, typer.Option("--version", metavar=FLAG, help="Print the version.", is_eager=True)
    ] = False,
) -> None:
    if version:
        typer.echo(f"rasplens {__version__}")
        raise typer.Exit()


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

    declared = _declared(n_heads, positions, activation, normalization, attn_scale)
    _check_has_model(learned is not None, declared, expect)
    check_names(task, program or [], [learned] if learned else [])
    own = task_source(task, Sizes(vocab, max_len, causal, output=output))
    from rasplens.sources.request import Request
    from rasplens.workflows.run import run_task

    to, chosen = _to(ctx, out or _named("runs", own.name)), _compare_config(config, inputs)
    models = () if learned is None else (learned,)
    asked = Request(own, models, tuple(program or ()), chosen, seed, as_part, declared, expect, device)
    run_task(asked, to, verbose=verbose, json=json, began=began)


@command("compile")
def compile_(
    ctx: typer.Context,
    source: Source,
    program: ProgramName = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    partial: Undefined = PartialName.forbid,
    output: Output = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the weights, as safetensors.")
    ] = None,
    huggingface: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="A folder for it as a GPT-2 that transformers loads; with --causal."),
    ] = None,
    run_on: Annotated[
        str | None,
        typer.Option("--input", metavar="TOKENS", help="A sequence to run the model on, such as a,b,a."),
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Compile a RASP program, print its anatomy, and run it if an input is given.

    Example: rasplens compile my_program.py:histogram --vocab a,b,c --max-len 5 --input b,a,b
    """
    from rasplens.sources import Sizes
    from rasplens.workflows.compile import Outputs, compile_and_show

    to = Outputs(None if out is None else _to(ctx, out), huggingface)
    compile_and_show(source, program, Sizes(vocab, max_len, causal, partial.value, output), to, run_on, json)


@command()
def compress(
    ctx: typer.Context,
    source: Source,
    d: Annotated[
        list[int],
        typer.Option(
            "--d", min=1, metavar="N", help="The width of the residual stream; repeat the option for more."
        ),
    ],
    program: ProgramName = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    partial: Undefined = PartialName.forbid,
    output: Output = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", metavar=FLAG, help="Compile without the optimiser: every variable keeps its own directions."
        ),
    ] = False,
    recipe: Annotated[str, typer.Option(metavar="NAME", help="fast, or paper with its 300,000 steps.")] = "fast",
    seed: Seed = 0,
    models: Annotated[
        int,
        typer.Option(
            min=1, max=MOST_MODELS, metavar="N", help="How many models per width, with seeds from --seed on."
        ),
    ] = 1,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the model.")] = Path(
        "compressed.safetensors"
    ),
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Compress a compiled program: its features share d directions. Run it again to resume after an interruption.

    Example: rasplens compress frac_prevs --d 6
    """
    from rasplens.sources import Sizes
    from rasplens.workflows.compress import CompressionRequest, compress_and_show

    sizes, seeds = Sizes(vocab, max_len, causal, partial.value, output), tuple(range(seed, seed + models))
    wanted = CompressionRequest(source, program, sizes, not plain, tuple(d), recipe, seeds)
    compress_and_show(wanted, _to(ctx, out), json)


@command()
def verify(
    source: Source,
    program: ProgramName = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    partial: Undefined = PartialName.forbid,
    output: Output = None,
    samples: Annotated[
        int,
        typer.Option(
            min=1, max=MOST, metavar="N", help="How many inputs to check if there are too many to check all."
        ),
    ] = 2_000,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Check that a compiled program answers as the interpreter does, on all inputs if there are few enough.

    Example: rasplens verify my_program.py:histogram --vocab a,b,c --max-len 5
    """
    from rasplens.sources import Sizes
    from rasplens.workflows.compile import verify_and_show

    verify_and_show(source, program, Sizes(vocab, max_len, causal, partial.value, output), samples, seed, json)


class _ListsRecipes(_SaidOnce):
    """A command whose help ends with the recipes; they are imported when the help is asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from rasplens.learned.recipes import GENERAL, RECIPES

        lines = [
            f"{task} {name}: {recipe.architecture}, {recipe.steps:,} steps of {recipe.batch_size:,} inputs"
            for task, recipes in {**RECIPES, "your own": GENERAL}.items()
            for name, recipe in recipes.items()
        ]
        self.epilog = "\n\n".join(["Recipes:", *lines])
        super().format_help(ctx, formatter)


@app.command(cls=_ListsRecipes)
def train(
    ctx: typer.Context,
    task: TaskName,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How to train: one of the recipes listed below, or a TOML file. By default fast; for a task of "
            "your own, mlp follows if attention alone does not learn it. With --siit, a TOML file of SIITRecipe's "
            "fields.",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Steps to train; by default the recipe's. With --siit, of its first cycle."
        ),
    ] = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    output: Output = None,
    seed: Seed = 0,
    models: Annotated[
        int, typer.Option(min=1, max=MOST_MODELS, metavar="N", help="How many models, with seeds from --seed on.")
    ] = 1,
    siit: Annotated[
        bool,
        typer.Option(
            "--siit",
            help="Train chosen heads and MLPs to compute the variables of the task's program, by strict "
            "interchange-intervention training.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the model; TASK.safetensors by default.")
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Train a model on a task. Run the same command again to resume after an interruption.

    Example: rasplens train copy --recipe smeared --out copy.safetensors
    """
    from rasplens.sources import Sizes, task_source

    asked = task_source(task, Sizes(vocab, max_len, causal, output=output))
    if siit:
        if models != 1:
            raise RaspLensError("--siit trains one model; omit --models.")
        from rasplens.workflows.train import implement_and_show, siit_recipe

        to = _to(ctx, out or _named(f"{asked.name}.siit.safetensors"))
        implement_and_show(asked, siit_recipe(recipe, steps), seed, to, json)
        return
    from rasplens.workflows.train import recipes_of, train_and_show

    to = _to(ctx, out or _named(f"{asked.name}.safetensors"))
    train_and_show(asked, recipes_of(asked, recipe, steps), list(range(seed, seed + models)), to, json)


class KindName(StrEnum):
    """The kinds of models whose circuit is known."""

    compiled = "compiled"
    disguised = "disguised"
    compressed = "compressed"
    siit = "siit"


class AblationName(StrEnum):
    """The values that an ablated edge can carry."""

    resample = "resample"
    mean = "mean"
    zero = "zero"


class MetricName(StrEnum):
    """The measures of damage."""

    kl = "kl"
    loss = "loss"
    logit_difference = "logit_difference"
    l2 = "l2"


@command()
def methods(
    ctx: typer.Context,
    source: Source,
    program: ProgramName = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    causal: Causal = False,
    output: Output = None,
    kind: Annotated[
        KindName,
        typer.Option(
            help="The compiled model, the same in other weights or fewer directions, or one trained to implement "
            "it."
        ),
    ] = KindName.compiled,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A model from `rasplens train --siit`, instead of one that --kind makes."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="exact, acdc, eap, ...; for variables probe, das, ...; repeat the option for more; all by "
            "default.",
        ),
    ] = None,
    ablation: Annotated[AblationName, typer.Option(help="What an ablated edge carries.")] = AblationName.resample,
    metric: Annotated[MetricName, typer.Option(help="What counts as damage.")] = MetricName.kl,
    one_token: Annotated[
        bool, typer.Option("--one-token", metavar=FLAG, help="The other input differs in one token.")
    ] = False,
    signed: Annotated[
        bool, typer.Option("--signed", metavar=FLAG, help="Rank edges by signed effect, not by its size.")
    ] = False,
    without_embeddings: Annotated[
        bool, typer.Option("--without-embeddings", metavar=FLAG, help="Leave out edges from embeddings.")
    ] = False,
    points: Annotated[
        int | None, typer.Option(metavar="N", help="Points of integrated gradients; 50 by default.")
    ] = None,
    variables: Annotated[
        bool,
        typer.Option("--variables", metavar=FLAG, help="Score methods that look for variables, not for circuits."),
    ] = False,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own scores, an importances.json in MIB's format.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the circuit in MIB's format, and the model beside it."),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Score methods that find circuits or variables, on a model in which these are known.

    Example: rasplens methods sort --kind disguised --method eap --method acdc
    """
    from rasplens.compare.discovery.problem import POINTS, Protocol
    from rasplens.sources import Sizes
    from rasplens.workflows.methods import Wanted, find_variables_and_show, score_and_show

    if model is not None and kind is not KindName.compiled:
        raise RaspLensError("--model gives a model, --kind makes one; omit one of them.")
    wanted = Wanted(source, program, Sizes(vocab, max_len, causal, output=output), kind.value, seed, model)
    if variables:
        is_default = ablation is AblationName.resample and metric is MetricName.kl and points is None
        if scores or export or signed or one_token or without_embeddings or not is_default:
            raise RaspLensError(
                "--variables scores no edges; omit --ablation, --metric, --one-token, --signed, "
                "--without-embeddings, --points, --scores and --export."
            )
        find_variables_and_show(wanted, method or [], json)
        return
    protocol = Protocol(
        ablation=ablation.value,
        metric=metric.value,
        corruption="one_token" if one_token else "task",
        absolute=not signed,
        embeddings="out" if without_embeddings else "apart",
        points=POINTS if points is None else points,
        seed=seed,
    )
    to = None if export is None else _to(ctx, export)
    score_and_show(wanted, method or [], protocol, scores, to, json)


@command()
def reproduce(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="sort, compression, compression_three_layers, compression_narrow, copy, copy_smeared or grid.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write model and figures to.")] = Path(
        "runs/reproductions"
    ),
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Train a published model anew, and show its figures beside the published ones.

    Example: rasplens reproduce copy_smeared
    """
    from rasplens.workflows.reproduce import reproduce_and_show

    reproduce_and_show(name, _to(ctx, out), json)


@command()
def inspect(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A model's file, or a Hugging Face folder.")],
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK", help="A task of your own to try it on; repeat the option for more."),
    ] = None,
    n_heads: Heads = None,
    positions: Positions = None,
    activation: Activation = None,
    normalization: Normalization = None,
    attn_scale: Scale = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a file holds: its architecture, its hook points, and how well it does each task.

    Example: rasplens inspect my_model.pt
    """
    from rasplens.sources import task_source
    from rasplens.workflows.inspecting import inspect_and_show

    declared = _declared(n_heads, positions, activation, normalization, attn_scale)
    inspect_and_show(path, [task_source(name) for name in task or []], declared, json)


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

    sweep_and_show(path, out or _named("runs", path.stem), processes, json)


@command()
def tasks(json: Json = False) -> None:
    """List the tasks, with what each asks.

    Example: rasplens tasks
    """
    from rasplens.workflows.listing import list_tasks

    list_tasks(json)


@command()
def programs(json: Json = False) -> None:
    """List the programs of the library, with what they do.

    Example: rasplens programs
    """
    from rasplens.workflows.listing import list_programs

    list_programs(json)


@command()
def models(json: Json = False) -> None:
    """List the shipped models, with how they were trained and how often they are right.

    Example: rasplens models
    """
    from rasplens.workflows.listing import list_models

    list_models(json)


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

    declared = _declared(n_heads, positions, activation, normalization, attn_scale)
    _check_has_model(bool(learned), declared, expect)
    check_names(task, program or [], learned or [])
    own = task_source(task, Sizes(vocab, max_len, causal, output=output))
    from rasplens.sources.request import Request
    from rasplens.workflows.compare import compare_and_show

    chosen, to = _compare_config(config, inputs), None if out is None else _to(ctx, out)
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

    declared = _declared(n_heads, positions, activation, normalization, attn_scale)
    _check_has_model(learned is not None, declared, None)
    own = task_source(task, Sizes(vocab, max_len, causal, output=output))
    from rasplens.sources.request import Request
    from rasplens.workflows.explain import explain_and_show

    models, chosen = () if learned is None else (learned,), _compare_config(config, None)
    asked = Request(own, models, (), chosen, seed, as_part=False, declared=declared, expected=None)
    explain_and_show(asked, budget, None if out is None else _to(ctx, out), json)


def _to(ctx: typer.Context, path: Path) -> Any:
    """Where a command writes to; whatever else it names is read."""
    from rasplens.output_files import Destination, named_files

    read = [value for name, value in ctx.params.items() if name not in OUTPUTS]
    return Destination(path, named_files(read), force=ctx.params["force"])


def _named(*parts: str) -> Path:
    """Return the path of an output that is named after a task."""
    from rasplens.output_files import file_name

    return Path(*map(file_name, parts))


def _declared(
    n_heads: int | None,
    positions: PositionsName | None,
    activation: ActivationName | None,
    normalization: NormalizationName | None,
    attn_scale: float | None,
) -> Any:
    """Return the settings declared for a state dict, which its shapes do not tell."""
    from rasplens.learned.importers.readings import Declared

    words = [None if name is None else name.value for name in (positions, activation, normalization)]
    return Declared(n_heads, words[0], words[1], words[2], attn_scale)


def _check_has_model(is_given: bool, declared: Any, expected: float | None) -> None:
    """Raises if options describe the user's model, and none is given."""
    from rasplens.learned.importers.readings import NOTHING_DECLARED

    if not is_given and (declared != NOTHING_DECLARED or expected is not None):
        raise RaspLensError(
            "--n-heads, --positions, --activation, --normalization, --attn-scale and --expect describe a model "
            "of your own. Give it with --learned, or omit them."
        )


def _compare_config(preset: Preset, inputs: int | None) -> Any:
    """The config of a comparison by its name, with a number of inputs if one is given."""
    from rasplens.compare.config import get_config

    return get_config(preset.value) if inputs is None else get_config(preset.value, n_inputs=inputs)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line; an error that the user can fix is one line on stderr and exit code 2."""
    started = time.perf_counter()
    warnings.showwarning = _show_warning
    # Read when PyTorch loads OpenMP: waiting threads sleep, and leave the processors to others.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):  # a character that the terminal cannot show becomes its escape code
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(arguments, prog_name="rasplens", standalone_mode=False)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        message = _message(error)
        if message is None:
            raise
        typer.echo(f"rasplens: {message}", err=True)
        sys.exit(2)
    if code == INTERRUPTED:  # typer turns Ctrl-C within a command into an exit code
        typer.echo(f"Stopped after {time.perf_counter() - started:.0f} s. {AFTER}", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """One line, without the place in our code that it comes from."""
    typer.echo(f"rasplens: {message}", err=True)


PLAIN_WORDS = (
    (r"^No such option: --(gpu|cuda).*$", "There is no --gpu: --device cuda runs a language model on one"),
    (r"^Invalid value for '(.*?)': (Value error, )?", r"\1: "),
    (r"Input should be a valid integer, .*$", "it takes a whole number"),
    (r"Input should be a valid number, .*$", "it takes a number"),
    (r"Input should be (greater|less) than or equal to ", r"it has to be \1 than or equal to "),
)
"""What typer says of a value, and how it is said here."""


def _plainly(text: str) -> str:
    for said, plain in PLAIN_WORDS:
        text = re.sub(said, plain, text)
    return text


def _message(error: Any) -> str | None:
    """Return one line for an error that the user can fix; None for a bug of our own."""
    if hasattr(error, "format_message"):  # a usage error of the command line itself
        return f"{_plainly(error.format_message().rstrip('.'))}. Try --help."
    if isinstance(error, RaspLensError):
        return str(error) if "\n" in str(error) and "^" in str(error) else " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "Out of memory. Shorten the sequences, or reduce the vocabulary or the inputs."
    return None
