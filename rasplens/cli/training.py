"""Commands that train models."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rasplens import RaspLensError
from rasplens.cli.app import SaidOnce, app, command
from rasplens.cli.arguments import destination, named
from rasplens.cli.options import (
    MOST_MODELS,
    Causal,
    Force,
    Json,
    MaxLen,
    NoColor,
    Output,
    Quiet,
    Seed,
    TaskName,
    Vocab,
)


class _ListsRecipes(SaidOnce):
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

        to = destination(ctx, out or named(f"{asked.name}.siit.safetensors"))
        implement_and_show(asked, siit_recipe(recipe, steps), seed, to, json)
        return
    from rasplens.workflows.train import recipes_of, train_and_show

    to = destination(ctx, out or named(f"{asked.name}.safetensors"))
    train_and_show(asked, recipes_of(asked, recipe, steps), list(range(seed, seed + models)), to, json)


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

    reproduce_and_show(name, destination(ctx, out), json)
