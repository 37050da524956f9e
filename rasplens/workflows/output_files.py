"""Where commands write to, and what is there already: nothing is overwritten."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, LearnedModel, Recipe, SIITRecipe, load_learned
from rasplens.model import StorageError
from rasplens.tasks import Task


def check_file(out: Path, example: str) -> None:
    """Raises where no file can be written: before the work, not after.

    Args:
        out: The file.
        example: What it could be called, if it is a folder.

    Raises:
        RaspLensError: If it is a folder, or in none.
    """
    if out.is_dir():
        raise RaspLensError(f"{out} is a folder. Name a file in it, such as {out / example}.")
    if not out.resolve().parent.is_dir():
        raise RaspLensError(f"Cannot write {out}: the folder {out.parent} does not exist. Create it first.")


def trained_before(path: Path, task: Task, recipes: Collection[Recipe], seed: int) -> LearnedModel | None:
    """The model of this very training, by one of some recipes, if it is there; None if nothing is.

    Raises:
        RaspLensError: If something else is there.
    """
    if not path.exists():
        return None
    return _stored_by(path, task, [{"seed": seed, "recipe": recipe.to_dict()} for recipe in recipes])


def implemented_before(path: Path, task: Task, recipe: SIITRecipe, shape: Architecture, seed: int) -> bool:
    """Whether the model of this very training by SIIT is there.

    Raises:
        RaspLensError: If something else is there.
    """
    if not path.exists():
        return False
    _stored_by(path, task, [{"seed": seed, "recipe": asdict(recipe), "architecture": asdict(shape)}])
    return True


def _stored_by(path: Path, task: Task, ways: Collection[Mapping[str, Any]]) -> LearnedModel:
    """The model of a file, which has learned a task in one of some ways.

    Raises:
        RaspLensError: If it has not, or there is no model.
    """
    try:
        model = load_learned(path)
    except StorageError:
        raise RaspLensError(
            f"{path} is there already, and no such model. Give another --out, or delete it."
        ) from None
    found = model.provenance
    if model.task != task.name or all(_differs(found, way) for way in ways):
        raise RaspLensError(
            f"{path} holds another model, {model.origin} on {model.task}. Give another --out, or delete it."
        )
    if found.get("task_digest", task.digest) != task.digest:
        raise RaspLensError(
            f"{path} learned a task {task.name!r} with other inputs or answers. Give another --out, or delete it."
        )
    return model


def _differs(found: Mapping[str, Any], way: Mapping[str, Any]) -> bool:
    return any(found.get(name) != value for name, value in way.items())
