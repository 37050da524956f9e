"""Commands that compile a program, check it and compress it."""

from pathlib import Path
from typing import Annotated

import typer

from rasplens.cli.app import command
from rasplens.cli.arguments import destination
from rasplens.cli.options import (
    FLAG,
    MOST,
    MOST_MODELS,
    Causal,
    Force,
    Json,
    MaxLen,
    NoColor,
    Output,
    PartialName,
    ProgramName,
    Quiet,
    Seed,
    Source,
    Undefined,
    Vocab,
)


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

    to = Outputs(None if out is None else destination(ctx, out), huggingface)
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
    compress_and_show(wanted, destination(ctx, out), json)


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
