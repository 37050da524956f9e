"""Comparisons as jobs: a program against a model that is trained, loaded, or the program in other weights."""

import inspect
import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from rasplens.compare.config import PRESETS, Preset, get_config
from rasplens.errors import RaspLensError, meant
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
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RaspLensError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RaspLensError(f"{path} is no TOML: {error}.") from None
    tables: Any = found.get("jobs")
    if set(found) != {"jobs"} or not (isinstance(tables, list) and all(isinstance(one, dict) for one in tables)):
        has = ", ".join(found) or "nothing"
        raise RaspLensError(f"{path} must have tables [[jobs]] and nothing else; it has {has}.")
    known = list(inspect.signature(comparison_job).parameters)
    jobs = []
    for table in tables:
        if unknown := [key for key in table if key not in known]:
            raise RaspLensError(
                f"{path}: a job has no {unknown[0]!r}; it takes {', '.join(known)}.{meant(unknown[0], known)}"
            )
        if "task" not in table:
            raise RaspLensError(f'{path}: every job needs a task, such as task = "copy".')
        values = [value if isinstance(value, list) else [value] for value in table.values()]
        configs = dict(zip(table, values, strict=True)).get("config", [])
        if wrong := [one for one in configs if one not in PRESETS]:
            raise RaspLensError(f"{path}: config must be one of {', '.join(PRESETS)}; got {wrong[0]!r}.")
        jobs += [comparison_job(**dict(zip(table, one, strict=True))) for one in product(*values)]
    return jobs


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
