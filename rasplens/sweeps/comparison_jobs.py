"""Comparisons as jobs: a program against a model that is trained, loaded, or the program in other weights."""

import inspect
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from rasplens.compare.config import PRESETS, Preset, get_config
from rasplens.errors import RaspLensError, meant
from rasplens.learned.recipe_files import read_toml
from rasplens.sources.files import file_source
from rasplens.sweeps.job import Job


def comparison_job(
    task: str,
    program: str | None = None,
    *,
    recipe: str | None = None,
    model: str | None = None,
    seed: int = 0,
    config: Preset = "quick",
) -> Job:
    """A comparison as plain data.

    Args:
        task: By its name, or `FILE.py:NAME`, or a data file; as on the command line.
        program: One of the task's by name, the first by default, or `FILE.py:NAME`, or `FILE.rasp`.
        recipe: To train a model by, from the seed.
        model: Instead, the file of one; neither takes the shipped model.
        seed: Of training and comparison.
        config: A preset of comparisons.

    Raises:
        RaspLensError: If both a recipe and a model are given, there is no such preset, or a file is not there.
    """
    if recipe is not None and model is not None:
        raise RaspLensError(
            f"Give either recipe={recipe!r}, to train a model, or model={model!r}, the file of one; not both."
        )
    get_config(config)
    named = [file_source(name) for name in (task, program) if name is not None]
    files = [str(found.path) for found in named if found is not None]
    files += [model] if model is not None else []
    files += [task] if file_source(task) is None and Path(task).is_file() else []
    arguments = {
        "task": task,
        "program": program,
        "recipe": recipe,
        "model": model,
        "seed": seed,
        "config": config,
    }
    return Job("rasplens.sweeps.comparison_jobs:compared", arguments, files)


def read_jobs(path: str | Path) -> list[Job]:
    """The comparisons of a TOML file: tables `[[jobs]]` with the arguments of `comparison_job`.

    An argument that is a list stands for one comparison with each of its values; several lists, for all pairs.

    Raises:
        RaspLensError: If the file cannot be read, has no such table, or one of other keys.
    """
    found = read_toml(path)
    tables: Any = found.get("jobs")
    if set(found) != {"jobs"} or not (isinstance(tables, list) and all(isinstance(one, dict) for one in tables)):
        has = ", ".join(found) or "nothing"
        raise RaspLensError(f"{path} must have tables [[jobs]] and nothing else; it has {has}.")
    return [
        comparison_job(**dict(zip(table, one, strict=True)))
        for table in tables
        for one in product(*_values(table, str(path)).values())
    ]


def _values(table: Mapping[str, Any], where: str) -> dict[str, list[Any]]:
    """The values of each argument of a job.

    Raises:
        RaspLensError: If an argument is none of a job's, has a value of another type, or there is no task.
    """
    known = list(inspect.signature(comparison_job).parameters)
    if unknown := [key for key in table if key not in known]:
        wrong = unknown[0]
        raise RaspLensError(f"{where}: a job has no {wrong!r}; it takes {', '.join(known)}.{meant(wrong, known)}")
    if "task" not in table:
        raise RaspLensError(f'{where}: every job needs a task, such as task = "copy".')
    values = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    for key, each in values.items():
        kind, what = (int, "a whole number") if key == "seed" else (str, "a text")
        if not each or any(type(value) is not kind for value in each):
            raise RaspLensError(f"{where}: {key} must be {what}, or a list of these; got {table[key]!r}.")
    if wrong_ones := [one for one in values.get("config", []) if one not in PRESETS]:
        raise RaspLensError(f"{where}: config must be one of {', '.join(PRESETS)}; got {wrong_ones[0]!r}.")
    return values


def compared(
    task: str, program: str | None, recipe: str | None, model: str | None, seed: int, config: Preset
) -> Mapping[str, Any]:
    """The row of one comparison: the verdict, its levels, what counts for them, and accuracies."""
    from rasplens.compare import compare, comparison_table
    from rasplens.learned import train
    from rasplens.sources import learned_model, reference, task_source

    known = task_source(task)
    if recipe is None:
        studied = learned_model(known, None if model is None else Path(model))
        learned, vocabulary = studied.model, studied.vocabulary(known)
    else:
        learned, vocabulary = train(known, recipe=recipe, seed=seed), None
    result = compare(
        reference(known, program), learned, task=known, config=config, seed=seed, vocabulary=vocabulary
    )
    row = comparison_table([result]).iloc[0].to_dict()
    named = {"task_name": row.pop("task"), "program_name": row.pop("program")}
    return named | {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}
