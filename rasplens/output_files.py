"""Where commands write to, and what is there already: nothing foreign is replaced unless the user says so."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, LearnedModel, Recipe, SIITRecipe, load_learned
from rasplens.model import StorageError
from rasplens.sources.models import TOKEN_MAP
from rasplens.tasks import Task

OWN_MARKS = {
    ".html": rb'<meta name="generator" content="RASPLens">',
    ".json": rb'\A\{\s*"rasplens": ',
    ".jsonl": rb'\A(\Z|\{"(seed|step|d)": )',
}
"""How the files that RASPLens writes begin, by their endings: reports, comparisons, training histories."""

HEAD = 1_000
"""Bytes within which these marks stand."""

INSTEAD = "Give another --out, or delete it, or replace it with --force."
"""The advice where something is there already."""


@dataclass(frozen=True)
class Destination:
    """The file or folder that a command writes to, and what must not be replaced there.

    Attributes:
        path: As the command line names it.
        inputs: Files and folders that the command reads. They are never replaced.
        force: Whether other files may be replaced.
    """

    path: Path
    inputs: tuple[Path, ...] = ()
    force: bool = False

    def check_file(self, example: str) -> None:
        """Raises where `path` is not a file that can be written, or one that must not be replaced.

        Args:
            example: What it could be called, if it is a folder.

        Raises:
            RaspLensError: If so.
        """
        if self.path.is_dir():
            raise RaspLensError(f"{self.path} is a folder. Name a file in it, such as {self.path / example}.")
        self.check(self.path)

    def make_folder(self) -> None:
        """Makes a folder of `path`, if there is none.

        Raises:
            RaspLensError: If something else is there, or it cannot be made.
        """
        self.check_folder()
        self.path.mkdir(parents=True, exist_ok=True)

    def check_folder(self, *files: Path) -> None:
        """Raises where `path` is no folder and cannot be made one, or files in it must not be replaced.

        Args:
            files: The files. Those that RASPLens wrote are replaced without being asked.

        Raises:
            RaspLensError: If so.
        """
        there = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not there.is_dir():
            raise RaspLensError(f"{there} is no folder. Give another --out.")
        _check_apart(files)
        if self.path.is_dir():
            self.check(*files, refreshed=True)
        elif not os.access(there, os.W_OK):
            raise RaspLensError(f"Cannot make {self.path}: the folder {there} is not writable.")

    def check(self, *files: Path, refreshed: bool = False) -> None:
        """Raises where a file cannot be written, or must not be replaced: before the work, not after.

        Args:
            files: The files.
            refreshed: Whether files of that ending that RASPLens wrote are replaced without being asked.

        Raises:
            RaspLensError: If one is no regular file or in no folder, is read by the command, is there already,
                or two are the same.
        """
        self.check_places(files)
        for file in files:
            if not file.exists():
                continue
            self.check_unread(file)
            if not (self.force or (refreshed and is_own(file))):
                raise RaspLensError(f"{file} already exists. {INSTEAD}")

    def check_places(self, files: Collection[Path]) -> None:
        """Raises where a file cannot be written, whatever is there.

        Raises:
            RaspLensError: If so, or two of them are the same.
        """
        for file in files:
            _check_place(file)
        _check_apart(files)

    def check_unread(self, file: Path) -> None:
        """Raises where a file that is there is one that the command reads, under whatever name.

        Raises:
            RaspLensError: If so.
        """
        if any(file.samefile(read) for read in self._read_files()):
            raise RaspLensError(f"{file} is read by this command, so it is never replaced. Give another --out.")

    def write(self, file: Path, save: Callable[[Path], None], refreshed: bool = False) -> Path:
        """Writes a file by a function, if it may still be written, and returns it."""
        self.check(file, refreshed=refreshed)
        save(file)
        return file

    def _read_files(self) -> Iterator[Path]:
        """Files that the command reads: what it was given, what lies beside or in it, and modules it imported."""
        for given in self.inputs:
            yield from (path for path in given.rglob("*") if path.is_file())
            yield from (path for path in (given, given.parent / TOKEN_MAP) if path.is_file())
        modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        yield from (path for name in modules if name is not None and (path := Path(name)).is_file())


def _check_apart(files: Collection[Path]) -> None:
    """Raises where two files are the same."""
    places = [file.resolve() for file in files]
    if twice := [file for file, place in zip(files, places, strict=True) if places.count(place) > 1]:
        raise RaspLensError(f"Two results would be written to {twice[0]}. Give their sources other names.")


def _check_place(file: Path) -> None:
    """Raises where no regular file is or could be."""
    folder = file.parent
    if folder.exists() and not folder.is_dir():
        raise RaspLensError(f"Cannot write {file}: {folder} is no folder. Give another --out.")
    if not folder.is_dir():
        raise RaspLensError(f"Cannot write {file}: the folder {folder} does not exist. Create it first.")
    if not os.access(folder, os.W_OK):
        raise RaspLensError(f"Cannot write {file}: the folder {folder} is not writable. Give another --out.")
    if file.is_symlink():
        raise RaspLensError(f"{file} is a link: neither it nor what it points to is replaced. Give another --out.")
    if file.exists() and not file.is_file():
        raise RaspLensError(f"{file} is not a regular file, and is never replaced. Give another --out.")


def is_own(file: Path) -> bool:
    """Whether a file says that RASPLens wrote it: a report, a comparison, or the history of a training."""
    mark = OWN_MARKS.get(file.suffix)
    if mark is None:
        return False
    with file.open("rb") as opened:
        return re.search(mark, opened.read(HEAD)) is not None


def named_files(values: Iterable[object]) -> tuple[Path, ...]:
    """The files and folders that the values of a command's options name, `FILE:NAME` included."""
    found: list[Path] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += named_files(value)
        elif isinstance(value, Path):
            found += [value] if value.exists() else []
        elif isinstance(value, str):
            names = (value, value.rpartition(":")[0])
            found += [Path(name) for name in names if Path(name).suffix and Path(name).is_file()]
    return tuple(found)


def check_state(to: Destination, state: Path) -> None:
    """Raises where the state of a training, or its history, cannot be kept. An older state is gone on with.

    Raises:
        RaspLensError: If so.
    """
    to.check_places([state])
    if state.exists():
        to.check_unread(state)
    to.check(state.with_suffix(".jsonl"), refreshed=True)


def file_name(name: str) -> str:
    """The name of a task or program as a file's: without what would lead into another folder."""
    return re.sub(r"[/\\\0]", "_", name).lstrip(".") or "_"


def trained_before(
    to: Destination, path: Path, task: Task, recipes: Collection[Recipe], seed: int
) -> LearnedModel | None:
    """The model of this very training, by one of some recipes, if it is there; None if it may be written.

    Raises:
        RaspLensError: If something else is there that is not replaced.
    """
    return _found(to, path, task, [{"seed": seed, "recipe": recipe.to_dict()} for recipe in recipes])


def implemented_before(to: Destination, task: Task, recipe: SIITRecipe, shape: Architecture, seed: int) -> bool:
    """Whether the model of this very training by SIIT is there.

    Raises:
        RaspLensError: If something else is there that is not replaced.
    """
    way = {"seed": seed, "recipe": asdict(recipe), "architecture": asdict(shape)}
    return _found(to, to.path, task, [way]) is not None


def _found(to: Destination, path: Path, task: Task, ways: Collection[Mapping[str, Any]]) -> LearnedModel | None:
    """The model of a file, which has learned a task in one of some ways; None if another may be written there."""
    to.check_places([path])
    if path.exists():
        with suppress(RaspLensError) if to.force else nullcontext():
            return _stored_by(path, task, ways)
    to.check(path)
    return None


def _stored_by(path: Path, task: Task, ways: Collection[Mapping[str, Any]]) -> LearnedModel:
    """The model of a file, which has learned a task in one of some ways.

    Raises:
        RaspLensError: If it has not, or there is no model.
    """
    try:
        model = load_learned(path)
    except StorageError:
        raise RaspLensError(f"{path} already exists, and is not a trained model. {INSTEAD}") from None
    found = model.provenance
    if model.task != task.name or all(_differs(found, way) for way in ways):
        raise RaspLensError(f"{path} holds another model, {model.origin} on {model.task}. {INSTEAD}")
    if found.get("task_digest", task.digest) != task.digest:
        raise RaspLensError(f"{path} learned a task {task.name!r} with other inputs or answers. {INSTEAD}")
    return model


def _differs(found: Mapping[str, Any], way: Mapping[str, Any]) -> bool:
    return any(found.get(name) != value for name, value in way.items())
