"""RASP files and texts, read into s-ops and selectors by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rasplens.compile import rasp
from rasplens.compile.rasp_text.bounds import LONGEST_TEXT, StepBudget
from rasplens.compile.rasp_text.builtins import BUILTINS
from rasplens.compile.rasp_text.names import Names
from rasplens.compile.rasp_text.parser import Source, parse
from rasplens.errors import RaspLensError

LIBRARY = Path(__file__).with_name("library.rasp")


@dataclass(frozen=True, eq=False)
class RaspFile:
    """The definitions of a text in the RASP language.

    Attributes:
        name: The file, or what stands for it.
        sops: The s-ops by name, in the order in which they were assigned; names with `_` are left out.
        selectors: The selectors by name.
        example: What `set example` says, if it does.
    """

    name: str
    sops: dict[str, rasp.SOp]
    selectors: Mapping[str, rasp.Selector]
    example: Any = None

    def output(self, name: str | None = None) -> rasp.SOp:
        """An s-op by name; by default the one that was assigned last.

        Raises:
            RaspLensError: If there is none.
        """
        if not self.sops:
            raise RaspLensError(f"{self.name} assigns no s-op to a name.")
        if name is None:
            return self.sops[next(reversed(self.sops))]
        if name not in self.sops:
            raise RaspLensError(f"{self.name} defines no s-op {name!r}. It defines {', '.join(self.sops)}.")
        return self.sops[name]


def read_rasp(path: str | Path) -> RaspFile:
    """Read the definitions of a RASP file. Tokens are strings; reading runs nothing but the language itself.

    Raises:
        RaspTextError: If it is no program, with file, line and column.
        RaspLensError: If the file cannot be read.
    """
    return _defined(_source(Path(path)), Path(path))


def parse_rasp(text: str, name: str = "<text>") -> RaspFile:
    """Read the definitions of a RASP text; `load` looks in the current folder.

    Raises:
        RaspTextError: If it is no program, with line and column.
    """
    return _defined(Source(name, text), Path(name))


def _defined(source: Source, path: Path) -> RaspFile:
    found = _values(source, path, (), {**BUILTINS, **_library()}, StepBudget())
    public = {name: value for name, value in found.items() if not name.startswith("_")}
    return RaspFile(
        source.name,
        {name: value for name, value in public.items() if isinstance(value, rasp.SOp)},
        {name: value for name, value in public.items() if isinstance(value, rasp.Selector)},
        found.get("set example"),
    )


def _values(
    source: Source, path: Path, loading: tuple[Path, ...], known: Mapping[str, Any], steps: StepBudget
) -> dict[str, Any]:
    """The values of all names that a text assigns, in the order of their last assignment."""
    from rasplens.compile.rasp_text.evaluation import TextEvaluation

    def load(file: str, by: Source, tree: Any) -> Mapping[str, Any]:
        wanted = (path.parent / file) if file.endswith(".rasp") else path.parent / f"{file}.rasp"
        if wanted.resolve() in (*loading, path.resolve()):
            raise by.error(f"{file!r} loads itself, directly or through other files.", tree.meta)
        try:
            other = _source(wanted)
        except RaspLensError as error:
            raise by.error(str(error), tree.meta) from None
        found = _values(other, wanted, (*loading, path.resolve()), known, steps)
        return {name: value for name, value in found.items() if not name.startswith("_")}

    names = Names(Names(own=dict(known)))
    TextEvaluation(source, names, load, steps).visit(parse(source))
    return names.own


@cache
def _library() -> Mapping[str, Any]:
    return _values(_source(LIBRARY), LIBRARY, (), BUILTINS, StepBudget())


def _source(path: Path) -> Source:
    try:
        if not path.is_file():
            raise RaspLensError(f"There is no file {path}.")
        if path.stat().st_size > LONGEST_TEXT:
            raise RaspLensError(f"{path} has {path.stat().st_size:,} bytes; the limit is {LONGEST_TEXT:,}.")
        return Source(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RaspLensError(f"{path} cannot be read as text: {type(error).__name__}.") from None
