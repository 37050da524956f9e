"""The command that puts methods to the test."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rasplens import RaspLensError
from rasplens.cli.app import command
from rasplens.cli.arguments import destination
from rasplens.cli.options import (
    FLAG,
    Causal,
    Force,
    Json,
    MaxLen,
    NoColor,
    Output,
    ProgramName,
    Quiet,
    Seed,
    Source,
    Vocab,
)


class KindName(StrEnum):
    """The kinds of models whose circuit is known."""

    compiled = "compiled"
    disguised = "disguised"
    compressed = "compressed"
    siit = "siit"
    planted = "planted"


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
            help="The compiled model, the same in other weights or fewer directions, one trained to implement it, "
            "or a larger one that it is planted in."
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
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Your own scores, an importances.json in MIB's format; repeat the option for more files.",
        ),
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
    from rasplens.compare.discovery.protocol import POINTS, Protocol, Scoring, Setting
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
        points=POINTS if points is None else points,
        seed=seed,
    )
    scoring = Scoring(embeddings="out" if without_embeddings else "apart")
    to = None if export is None else destination(ctx, export)
    score_and_show(wanted, method or [], Setting(protocol, scoring), scores or [], to, json)
