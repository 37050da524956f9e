"""`rasplens train`: models of a task, one for each seed, or one whose nodes compute a program."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rasplens import terminal
from rasplens.errors import RaspLensError
from rasplens.learned import (
    Architecture,
    LearnedModel,
    Recipe,
    SIITModel,
    SIITRecipe,
    get_recipe,
    load_implementation,
    ordinary_architecture,
    read_recipe,
    read_siit_recipe,
    train_many,
    train_to_implement,
    use_all_cores,
)
from rasplens.learned.recipes import default_recipes
from rasplens.learned.siit.accuracy import PUBLISHED_MARKS
from rasplens.learned.siit.training import SIITReport
from rasplens.output_files import Destination, check_state, implemented_before, trained_before
from rasplens.progress import Advance, progress_bar, training_report
from rasplens.tasks import Task, compile_for

LEARNED = 0.99
"""A recipe that gives fewer right answers than this is not the last one to be tried."""


def train_and_show(
    task: Task, recipes: Mapping[str, Recipe], seeds: list[int], to: Destination, json: bool
) -> None:
    """Trains a model for each seed and stores it; a training that was interrupted goes on where it was.

    One that is finished is shown again.

    Raises:
        RaspLensError: If there is no place to write to, or another model is there.
    """
    out = to.path
    paths = [out] if len(seeds) == 1 else [out.with_stem(f"{out.stem}-{seed}") for seed in seeds]
    if out.is_dir():
        to.check_file(f"{task.name}.safetensors")
    with progress_bar(f"{task.name}: JAX compiles the training step") as advance:
        models, is_new = trained(task, recipes, seeds, to, paths, advance)
    if json:
        values = [
            {"task": task.name, "path": str(path), **model.provenance}
            for model, path in zip(models, paths, strict=True)
        ]
        terminal.as_json(values[0] if len(seeds) == 1 else values)
        return
    for model, path in zip(models, paths, strict=True):
        accuracy, architecture = (
            model.provenance["accuracy"],
            Recipe.from_dict(model.provenance["recipe"]).architecture,
        )
        terminal.out.print(
            f"{task.name}: {accuracy['token']:.4f} of the answers and {accuracy['sequence']:.4f} of the inputs "
            f"right on held-out inputs{_generated(model)} after {model.provenance['steps']:,} steps "
            f"({architecture}). Model: {path}"
            f"{'' if is_new else ', which already existed: nothing was trained.'}"
        )


def _generated(model: LearnedModel) -> str:
    own = model.provenance.get("generated")
    return "" if own is None else f", {own['token']:.4f} of the answers when it reads its own,"


def trained(
    task: Task,
    recipes: Mapping[str, Recipe],
    seeds: Sequence[int],
    to: Destination,
    paths: Sequence[Path],
    advance: Advance,
) -> tuple[list[LearnedModel], bool]:
    """The models of a task, stored at some paths of a destination, and whether any is new.

    Those that are there are not trained again. Recipes are tried one after the other until one learns the task.
    """
    places = dict(zip(seeds, paths, strict=True))
    found = {seed: trained_before(to, path, task, recipes.values(), seed) for seed, path in places.items()}
    models = {seed: model for seed, model in found.items() if model is not None}
    missing = [seed for seed in seeds if seed not in models]
    if not missing:
        return list(models.values()), False
    states = {
        name: paths[0].with_suffix(f"{f'.{name}' if len(recipes) > 1 else ''}.training.safetensors")
        for name in recipes
    }
    for state in states.values():
        check_state(to, state)
    use_all_cores()
    for name, chosen in recipes.items():
        report = training_report(advance, chosen.steps, len(missing))
        given = chosen if _is_file(name) or chosen != get_recipe(task.name, name) else name
        new = train_many(task, given, missing, progress=report, state_path=states[name])
        states[name].unlink()
        if min(model.provenance["accuracy"]["token"] for model in new) >= LEARNED:
            break
    for seed, model in zip(missing, new, strict=True):
        to.write(places[seed], model.save)
    models |= dict(zip(missing, new, strict=True))
    return [models[seed] for seed in seeds], True


def recipes_of(task: Task, recipe: str | None = None, steps: int | None = None) -> dict[str, Recipe]:
    """The recipes to try, by name: the one that is given, or those of the task, attention-only first.

    Args:
        task: The task.
        recipe: The name of one, or a TOML file.
        steps: How many steps to train instead of the recipe's.
    """
    names = default_recipes(task.name) if recipe is None else (recipe,)
    found = {name: read_recipe(name) if _is_file(name) else get_recipe(task.name, name) for name in names}
    return {name: _in_steps(one, steps) for name, one in found.items()}


R = TypeVar("R", Recipe, SIITRecipe)


def _in_steps(recipe: R, steps: int | None) -> R:
    """The recipe with another number of steps, of which at most half warm up; None for its own."""
    return recipe if steps is None else replace(recipe, steps=steps, warmup=min(recipe.warmup, steps // 2))


def _is_file(recipe: str) -> bool:
    return recipe.endswith(".toml")


def implement_and_show(
    task: Task, recipe: tuple[SIITRecipe, Architecture | None], seed: int, to: Destination, json: bool
) -> None:
    """Trains a model to implement a task's first program, stores it, and prints what its nodes compute.

    A training that was interrupted goes on where it was; one that is finished is shown again.

    Raises:
        RaspLensError: If the task has no program, no place to write to, or another model is there.
    """
    out = to.path
    if out.is_dir():
        to.check_file(f"{task.name}.siit.safetensors")
    if not task.programs:
        raise RaspLensError(f"Task {task.name!r} has no program, so no model can be trained to implement one.")
    how, given_shape = recipe
    compiled = compile_for(task)
    shape = given_shape or ordinary_architecture(compiled)
    if implemented_before(to, task, how, shape, seed):
        _show_implementation(load_implementation(out, compiled, task), out, json, is_new=False)
        return
    state = out.with_suffix(".training.safetensors")
    check_state(to, state)
    use_all_cores()
    with progress_bar(f"{task.name}: JAX compiles the training step") as advance:

        def report(now: SIITReport) -> None:
            losses = "  ".join(f"{name} {value:.4f}" for name, value in now.losses.items())
            advance(f"{task.name}: {losses}", now.step, sum(how.lengths))

        model = train_to_implement(compiled, task, shape, how, seed, progress=report, state_path=state)
    to.write(out, model.save)
    state.unlink()
    _show_implementation(model, out, json, is_new=True)


def _show_implementation(model: SIITModel, out: Path, json: bool, is_new: bool) -> None:
    if json:
        terminal.as_json({"task": model.task.name, "path": str(out), **model.provenance})
        return
    _show_nodes(model, out)
    if not is_new:
        terminal.out.print("It already existed: nothing was trained.")


def siit_recipe(recipe: str | None, steps: int | None = None) -> tuple[SIITRecipe, Architecture | None]:
    """The recipe of a TOML file, or the ordinary one, and the architecture that the file gives.

    Args:
        recipe: The file.
        steps: How many steps the first cycle has instead of the recipe's.

    Raises:
        RaspLensError: If it is no TOML file, or its fields are none of a recipe's.
    """
    if recipe is not None and not _is_file(recipe):
        raise RaspLensError(f"With --siit, --recipe must be a TOML file of SIITRecipe's fields; got {recipe!r}.")
    found, shape = (SIITRecipe(), None) if recipe is None else read_siit_recipe(recipe)
    return _in_steps(found, steps), shape


def _show_nodes(model: SIITModel, out: Path) -> None:
    """Prints a line for each node of the circuit, and what all of them come to."""
    found, rows = model.accuracy, []
    shares = found.interchange, found.changed, found.within
    for node, part in model.circuit.items():
        of_all, *of_changes = (share[str(node)] for share in shares)
        is_tested = str(node) not in found.untested
        tested = of_changes if is_tested else ["not tested" for _ in of_changes]
        rows.append([str(node), ", ".join(part.variables), of_all, *tested])
    headings = ["node", "variables", "interchange\naccuracy", "of answers\nthat change", "within the\ncircuit"]
    terminal.table(f"What the nodes of the model compute, on held-out inputs of {model.task.name}", headings, rows)
    said = f"{found.behaviour:.4f} of the answers right"
    if "strict" in found.least:
        strict = found.least["strict"]
        said += f"; {strict:.4f} when the node outside the circuit that matters most is resampled"
    terminal.out.print(f"{said}. Model: {out}")
    if found.untested:
        terminal.out.print(
            f"{len(found.untested)} of {len(rows)} nodes are not tested: no interchange of them changes an "
            "answer. What they compute is not known."
        )
    least = found.least
    missed = [
        f"{kind} is {least[kind]:.4f}, {mark:g} is needed"
        for kind, mark in PUBLISHED_MARKS.items()
        if kind in least and not least[kind] >= mark
    ]
    if missed:
        steps = f"it took {model.provenance['steps']:,} steps; --steps gives it more"
        terminal.out.print(f"Its circuit is not known: {', '.join(missed)} ({steps}).")
