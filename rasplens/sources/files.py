"""Definitions in users' own files: Python files, which are run, and RASP files, which are read."""

import importlib.util
import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rasplens.compile import rasp, read_rasp
from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError
from rasplens.tasks import Task


@dataclass(frozen=True)
class FileSource:
    """A file, and a name in it: `FILE.py:NAME`, `FILE.rasp` or `FILE.rasp:NAME`.

    Attributes:
        path: The file.
        name: The name; None for the last s-op of a file in the RASP language.
    """

    path: Path
    name: str | None

    @property
    def is_rasp(self) -> bool:
        """Whether it is a file in the RASP language."""
        return self.path.suffix == ".rasp"

    def __str__(self) -> str:
        return str(self.path) if self.name is None else f"{self.path}:{self.name}"


def file_source(source: str) -> FileSource | None:
    """The file that a command names; None if it names something else.

    Raises:
        RaspLensError: If there is no such file.
    """
    file, colon, name = source.rpartition(":")
    if not colon and source.endswith(".py"):
        raise RaspLensError(f"Name a program or task in {source}: {source}:NAME.")
    if not colon and not source.endswith(".rasp"):
        return None
    if colon and not (file and name):
        raise RaspLensError(f"{source!r} names no program or task. Write FILE.py:NAME or FILE.rasp:NAME.")
    found = FileSource(Path(file), name) if colon else FileSource(Path(source), None)
    if not found.path.is_file():
        raise RaspLensError(f"There is no file {found.path}.")
    return found


def program_in(source: FileSource, output: str | None = None) -> SOp:
    """The s-op that a file defines under a name.

    Raises:
        RaspLensError: If there is none, or the file fails.
    """
    found = found_in(source, output)
    if not isinstance(found, SOp):
        raise RaspLensError(f"{source} is a task; a program is needed here.")
    return found


def found_in(source: FileSource, output: str | None = None) -> SOp | Task:
    """The s-op or the task that a file defines under a name; a function without arguments is called.

    Raises:
        RaspLensError: If there is none, or the file fails.
    """
    if source.is_rasp:
        if output is not None and source.name is not None:
            raise RaspLensError(f"--output names an s-op of the file; {source} already does.")
        return read_rasp(source.path).output(output or source.name)
    if output is not None:
        raise RaspLensError("--output is for files in the RASP language; write FILE.py:NAME.")
    module = _run(source.path)
    found: Any = getattr(module, source.name or "", None)
    if _makes_one(found):
        found = _call(source.path, found)
    if not isinstance(found, SOp | Task):
        raise RaspLensError(
            f"{source.path} defines no s-op or task {source.name!r}. It defines {_defined(module)}."
        )
    return found


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RaspLensError(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    _call(path, spec.loader.exec_module, module)
    return module


def _call(path: Path, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's function, and return its result.

    Raises:
        RaspLensError: If it fails; with the line of the file where it did.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
        where = f"{path}, line {lines[-1]}" if lines else f"{path}"
        what = "" if isinstance(error, RaspLensError) else f"{type(error).__name__}: "
        raise RaspLensError(f"{where}: {what}{error}") from error


def _makes_one(value: Any) -> bool:
    """Whether it is a function that may give a program or a task: one without arguments."""
    return inspect.isfunction(value) and not inspect.signature(value).parameters


def _defined(module: ModuleType) -> str:
    primitives = rasp.TokensType | rasp.IndicesType | rasp.LengthType
    names = [
        name
        for name, value in vars(module).items()
        if (isinstance(value, SOp | Task) and not isinstance(value, primitives))
        or (_makes_one(value) and value.__module__ == module.__name__)
    ]
    return ", ".join(names) or "none"
