"""The options that several commands take."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

FLAG = ""
"""The metavar in help of an option that takes no value."""

LARGEST = 2**63 - 1
"""The largest seed: results keep it as a number of 64 bits."""

MOST, MOST_MODELS = 10_000_000, 10_000
"""The most inputs and models that a command takes; more would fill the memory without a message."""


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
