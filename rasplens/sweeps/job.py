"""A job: an importable function and its arguments, in plain data, and the key that its result is kept under."""

import ast
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import rasplens
from rasplens.errors import RaspLensError

Row = Mapping[str, Any]
"""Columns of a table by name, in JSON values."""

SOURCES = "*.py", "*.rasp", "*.lark", "*.safetensors"
"""What results depend on, of a package."""

LIBRARIES = "jax", "jaxlib", "numpy", "optax", "scikit-learn", "scipy", "torch", "transformer-lens"
"""What computes them besides, by its versions."""


@dataclass(frozen=True)
class Job:
    """What is to be computed, in plain data: it goes to other processes and other machines.

    Attributes:
        run: The function, as `"module:name"`. Whoever does the job must be able to import it. It takes the
            arguments by name, and gives a mapping of JSON values, a row of the table, or a list of such.
        arguments: JSON values by name.
        files: Paths that the function reads. Their contents are part of the key.

    Raises:
        RaspLensError: If the function's name is none, an argument is no JSON value, or a file is not there.
    """

    run: str
    arguments: Mapping[str, Any]
    files: Sequence[str] = ()

    def __post_init__(self) -> None:
        module, _, name = self.run.partition(":")
        if not module or not name.isidentifier():
            raise RaspLensError(f'A job\'s function is named as "module:name"; got {self.run!r}.')
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
    def key(self) -> str:
        """A digest of all that the result depends on: function, arguments, files, code, versions of libraries.

        So a result is never taken for that of other code. The code that counts is this package's, the function's
        module, and those that it imports from its own folder; comments, docstrings and layout do not. It is found
        once, when it is first asked for: files that change meanwhile are another job.

        Raises:
            RaspLensError: If there is no such function.
        """
        content = [self.run, dict(sorted(self.arguments.items())), [_digest_of_file(Path(f)) for f in self.files]]
        code = [_digest_of_package(), _digest_of_module(self.run.partition(":")[0]), _versions()]
        return hashlib.sha256(json.dumps([content, code], sort_keys=True).encode()).hexdigest()[:32]

    def function(self) -> Callable[..., Row | Sequence[Row]]:
        """The function itself.

        Raises:
            RaspLensError: If it cannot be imported.
        """
        module, _, name = self.run.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise RaspLensError(
                f"There is no function {self.run}: {error}. A job names a function of an importable module."
            ) from None

    def __str__(self) -> str:
        return f"{self.run.partition(':')[2]}({', '.join(f'{k}={v!r}' for k, v in self.arguments.items())})"


def _check_json(name: str, value: Any) -> None:
    """Raises where an argument does not come back from JSON as it was."""
    try:
        is_plain = json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        is_plain = False
    if not is_plain:
        raise RaspLensError(
            f"{name!r} of a job must be a JSON value (text, numbers, lists, and mappings by text), so that other "
            f"machines can read it; got {value!r}."
        )


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
        raise RaspLensError(f"There is no module {name}, which a job's function is to come from.")
    digest = hashlib.sha256()
    for path in _with_imported(Path(spec.origin)):
        digest.update(path.name.encode() + _digest_of_code(path).encode())
    return digest.hexdigest()


def _with_imported(module: Path) -> list[Path]:
    """A module's file and those that it imports from its own folder, and they in turn, in order."""
    found: set[Path] = set()
    left = [module]
    while left:
        if (path := left.pop()) in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())) if path.suffix == ".py" else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names.append(node.module)
            # Of `package.module` either part may be a file of this folder, which may be the package.
            beside = (path.parent / f"{part}.py" for name in names for part in name.split("."))
            left += [file for file in beside if file.is_file()]
    return sorted(found)


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
