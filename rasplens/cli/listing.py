"""Commands that list what there is, and what a file holds."""

from pathlib import Path
from typing import Annotated

import typer

from rasplens.cli.app import command
from rasplens.cli.arguments import declared_settings
from rasplens.cli.options import Activation, Heads, Json, Normalization, Positions, Quiet, Scale


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

    declared = declared_settings(n_heads, positions, activation, normalization, attn_scale)
    inspect_and_show(path, [task_source(name) for name in task or []], declared, json)


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
