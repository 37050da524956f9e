"""Names and what they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rasplens.errors import RaspLensError

if TYPE_CHECKING:
    from lark import Tree

    from rasplens.compile.rasp_text.parser import Source

RESERVED = frozenset({
    "True", "False", "tokens_asis", "tokens_str", "tokens_int", "tokens_float", "tokens_bool", "indices", "out",
    "get", "range", "zip", "len", "round", "indicator", "aggregate", "select",
})  # fmt: skip
"""Reserved names, which cannot be assigned even in a function."""

SETTABLE = frozenset({"tokens", "reverse"})
"""Built-in names that a text may redefine: `tokens = tokens_int;` reads numbers."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the program.

    Attributes:
        name: Its name.
        parameters: The names of its parameters.
        body: Its statements.
        result: The tree of what it returns.
        names: The names around it.
        source: The text that it stands in.
    """

    name: str
    parameters: tuple[str, ...]
    body: tuple[Tree[Any], ...]
    result: Tree[Any]
    names: Names
    source: Source


@dataclass(eq=False)
class Names:
    """Names and their values; what is not known here is looked for around."""

    around: Names | None = None
    own: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> Any:
        """The value of a name; KeyError if there is none."""
        for names in self._outwards():
            if name in names.own:
                return names.own[name]
        raise KeyError(name)

    def known(self) -> set[str]:
        """All names."""
        return {name for names in self._outwards() for name in names.own}

    def check_settable(self, name: str) -> None:
        """Raises where a name has a meaning that it keeps.

        Raises:
            RaspLensError: If it is reserved, or known from the start and to be set outside of functions.
        """
        is_outermost = self.around is not None and self.around.around is None
        known = self.around.own if self.around is not None and is_outermost else {}
        if name in RESERVED or (name in known and name not in SETTABLE):
            raise RaspLensError(f"{name!r} is built in and cannot be redefined. Choose another name.")

    def _outwards(self) -> Iterator[Names]:
        names: Names | None = self
        while names is not None:
            yield names
            names = names.around
