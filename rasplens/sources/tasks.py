"""The task of a command: by name, from a file of a user's own, or a program's own answers, also of the library."""

from dataclasses import replace
from pathlib import Path

from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError, meant
from rasplens.sources.files import file_source, found_in
from rasplens.sources.vocabularies import GIVEN, Sizes
from rasplens.tasks import TASKS, Task, get_task, task_from_data, task_from_program
from rasplens.tasks.own.data_files import ENDINGS


def check_task(source: str) -> None:
    """Raises where there is no such task; nothing is read or run.

    Raises:
        RaspLensError: If there is no such task, or no such file.
    """
    if is_data_file(source):
        if not Path(source).is_file():
            raise RaspLensError(f"There is no file {source}.")
    elif file_source(source) is None and source not in TASKS and source not in CATALOGUE:
        programs = ", ".join(name for name in CATALOGUE if name not in TASKS)
        raise RaspLensError(
            f"There is no task {source!r}.{meant(source, (*TASKS, *CATALOGUE))} The tasks are "
            f"{', '.join(TASKS)}, and the programs of the library: {programs}. "
            "Give your own as FILE.py:NAME, FILE.rasp, FILE.jsonl or FILE.csv."
        )


def is_data_file(source: str) -> bool:
    """Whether the name is that of a data file."""
    return Path(source).suffix in ENDINGS


def task_source(source: str, sizes: Sizes = Sizes()) -> Task:  # noqa: B008 - it is frozen
    """A task by its name, or from `FILE.py:NAME`, `FILE.rasp` or a data file; of a program, its own answers.

    A program of the library has small inputs of its own, unless others are given.

    Raises:
        RaspLensError: If there is none, or what a program needs is not given.
    """
    check_task(source)
    if is_data_file(source):
        _take_no_sizes(source, replace(sizes, causal=False))
        return task_from_data(source, causal=sizes.causal)
    found = file_source(source)
    if found is None and source not in TASKS:
        return _from_catalogue(source, sizes)
    if found is None:
        _take_no_sizes(source, sizes)
        return get_task(source)
    task = found_in(found, sizes.output)
    if isinstance(task, SOp):
        tokens = sizes.tokens(source, found.is_rasp)
        return task_from_program(task, tokens, sizes.length(source), causal=sizes.causal)
    _take_no_sizes(source, sizes)
    return task


def _from_catalogue(source: str, sizes: Sizes) -> Task:
    sizes.take_no_output()
    entry = CATALOGUE[source]
    causal = sizes.causal or dict(entry.options).get("causal", False)
    tokens = entry.vocab if sizes.vocab is None else sizes.tokens(source, False)
    return task_from_program(entry.build(), tokens, sizes.max_len or entry.max_len, causal=causal)


def _take_no_sizes(source: str, sizes: Sizes) -> None:
    if sizes.are_given:
        raise RaspLensError(f"Task {source!r} brings its own {GIVEN}; omit them.")
