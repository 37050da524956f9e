"""A job: an importable function and its arguments, in plain data, and the key that its result is kept under."""

import ast
import hashlib
import importlib
import importlib.util
import itertools
import json
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import rasplens
from rasplens.errors import RaspLensError, expect

Row = Mapping[str, Any]
"""Columns of a table by name, in JSON values."""

SOURCES = "*.py", "*.rasp", "*.lark", "*.safetensors"
"""Patterns of the files in a package that results depend on."""

LIBRARIES = "jax", "jaxlib", "numpy", "optax", "scikit-learn", "scipy", "torch", "transformer-lens"
"""The libraries whose versions results depend on as well."""


_IMPORTED: dict[str, str] = {}
"""The code of each module when this process imported a function from it."""


@dataclass(frozen=True)
class Job:
    """A computation in plain data: it goes to other processes and other machines.

    Attributes:
        run: The function, as `"module:name"`. Whoever does the job must be able to import it. It takes the
            arguments by name, and gives a mapping of JSON values, a row of the table, or several, as in a list.
        arguments: JSON values by name.
        files: Paths that the function reads. Their contents are part of the key.

    Raises:
        RaspLensError: If the function's name is none, or is that of a script's own; if an argument is no JSON
            value, or a file is not there.
    """

    run: str
    arguments: Mapping[str, Any]
    files: Sequence[str] = ()

    def __post_init__(self) -> None:
        expect(self.run, str, 'The function of a job must be text, "module:name"')
        module, _, name = self.run.partition(":")
        if module == "__main__":
            raise RaspLensError(
                f"{self.run} is a function of a script or notebook, which no other process can import. Put it "
                "into a module, such as a file beside the script."
            )
        if not module or not name.isidentifier():
            raise RaspLensError(f'The function of a job must be named "module:name"; got {self.run!r}.')
        for argument, value in self.arguments.items():
            _check_json(argument, value)
        for file in self.files:
            if not Path(file).is_file():
                raise RaspLensError(f"There is no file {file}, which a job of {self.run} reads.")
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))
        object.__setattr__(self, "files", tuple(self.files))

    def __reduce__(self) -> tuple[Any, ...]:
        return Job, (self.run, dict(self.arguments), self.files)

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """A digest of each file, found once as well."""
        return tuple(_digest_of_file(Path(file)) for file in self.files)

    @cached_property
    def key(self) -> str:
        """A digest of all that the result depends on: function, arguments, files and code.

        It is found once, when it is first asked for: files that change meanwhile are another job. A sweep asks
        anew when it begins.

        Raises:
            RaspLensError: If there is no such function.
        """
        content = [self.run, dict(sorted(self.arguments.items())), list(self.contents)]
        return hashlib.sha256(json.dumps([content, self.code], sort_keys=True).encode()).hexdigest()[:32]

    @cached_property
    def code(self) -> str:
        """A digest of the code that counts, found once as well.

        It is this package's, that of the function's module and of all that it imports and that is not installed,
        and the versions of the libraries that compute. Comments, docstrings and layout do not count.

        Raises:
            RaspLensError: If there is no such function.
        """
        return _code_of(self.run.partition(":")[0])

    def function(self) -> Callable[..., Row | Sequence[Row]]:
        """The function itself.

        Raises:
            RaspLensError: If it cannot be imported, or its code has changed since this process imported it.
        """
        module, _, name = self.run.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise RaspLensError(
                f"There is no function {self.run}: {error}. A job names a function of an importable module."
            ) from None
        if _IMPORTED.setdefault(module, self.code) != self.code:
            raise RaspLensError(
                f"The code of {module}, or of what it imports, has changed since this process imported it. Run "
                "the job in a new process."
            )
        return found

    def __str__(self) -> str:
        return f"{self.run.partition(':')[2]}({', '.join(f'{k}={v!r}' for k, v in self.arguments.items())})"


def as_of_now(jobs: Sequence[Job]) -> list[Job]:
    """The jobs anew, whose keys are those of the code and the files that there are now; each is read once."""
    code_of, digest_of = cache(_code_of), cache(_digest_of_file)
    found = [Job(job.run, job.arguments, job.files) for job in jobs]
    for job in found:  # what `cached_property` would find by itself, once for every job
        own = {
            "code": code_of(job.run.partition(":")[0]),
            "contents": tuple(digest_of(Path(file)) for file in job.files),
        }
        vars(job).update(own)
    return found


def _code_of(module: str) -> str:
    """A digest of all the code that the results of a module's functions depend on."""
    code = [_digest_of_package(), _digest_of_module(module), _versions()]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def _check_json(name: str, value: Any) -> None:
    """Raises where an argument does not come back from JSON as it was."""
    try:
        is_plain = json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        is_plain = False
    if is_plain and is_too_large(value):
        raise RaspLensError(
            f"{name!r} of a job is {value}: a table holds whole numbers of at most 64 bits. Give it as text."
        )
    if not is_plain:
        raise RaspLensError(
            f"{name!r} of a job must be a JSON value (text, numbers, lists, and mappings by text), so that other "
            f"machines can read it; got {value!r}."
        )


def is_too_large(value: Any) -> bool:
    """Whether it is a whole number that no column of a table holds: one of more than 64 bits."""
    return isinstance(value, int) and not -(2**63) <= value < 2**63


@cache
def _digest_of_package() -> str:
    """Of everything in RASPLens that a result may depend on."""
    digest = hashlib.sha256()
    for path in package_files():
        digest.update(path.name.encode() + _digest_of_code(path).encode())
    return digest.hexdigest()


@cache
def _versions() -> list[str]:
    return [f"{name} {version(name)}" for name in LIBRARIES]


def package_files() -> list[Path]:
    """The files of RASPLens that a result may depend on, in order."""
    root = Path(rasplens.__file__).parent
    links = [path for path in root.iterdir() if path.is_symlink()]  # which `rglob` does not enter
    return sorted({path for folder in (root, *links) for kind in SOURCES for path in folder.rglob(kind)})


def _digest_of_module(name: str) -> str:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise RaspLensError(f"There is no module {name}, in which a job looks for its function.")
    digest = hashlib.sha256()
    for path in _with_imported(Path(spec.origin)):
        digest.update(path.name.encode() + _digest_of_code(path).encode())
    return digest.hexdigest()


def _with_imported(module: Path) -> list[Path]:
    """A module's file and those that it imports, and they in turn, in order; without what is installed."""
    found: set[Path] = set()
    left = [module]
    while left:
        if (path := left.pop()) in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())) if path.suffix == ".py" else ():
            if isinstance(node, ast.Import):
                left += _files_of([alias.name for alias in node.names], [path.parent, *_own_folders()])
            if isinstance(node, ast.ImportFrom):
                # What is imported from a package may be one of its modules.
                names = [".".join(filter(None, (node.module, alias.name))) for alias in node.names]
                inside = [path.parents[node.level - 1]] if node.level else [path.parent, *_own_folders()]
                left += _files_of(names, inside)
    return sorted(found)


def _files_of(names: Sequence[str], folders: Sequence[Path]) -> list[Path]:
    """The files that are read when modules of such dotted names are imported from some folders."""
    found = []
    for name, folder in itertools.product(names, folders):
        parts = name.split(".")
        if parts[0] == rasplens.__name__:
            continue
        for depth, part in enumerate(parts):
            inside = folder.joinpath(*parts[:depth])
            found += [file for file in (inside / f"{part}.py", inside / part / "__init__.py") if file.is_file()]
    return found


def _own_folders() -> list[Path]:
    """Where Python looks for modules, but for the folders of what is installed."""
    installed = [Path(path).resolve() for path in {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix}]
    folders = [Path(entry).resolve() for entry in sys.path]
    return [folder for folder in folders if folder.is_dir() and not any(map(folder.is_relative_to, installed))]


def _digest_of_code(path: Path) -> str:
    """Of Python, its syntax tree without the strings that stand by themselves; of other files, the bytes."""
    if path.suffix != ".py":
        return _digest_of_file(path)
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        for name, body in ast.iter_fields(node):
            if isinstance(body, list):
                setattr(node, name, [part for part in body if not _is_text(part)])
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)
    )


def _digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
