"""From a syntax tree to the values of its names: numbers, strings, lists, functions, s-ops and selectors.

What is known beforehand is computed here: loops over lists, calls, choices by constants. What depends on the input
becomes an s-op or a selector. Source: Weiss et al. 2021, "Thinking Like Transformers", and its published grammar.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lark import Tree

from rasplens.compile import rasp
from rasplens.compile.errors import RaspTextError
from rasplens.compile.rasp_text.builtins import elementwise, is_static, negation, select, where
from rasplens.compile.rasp_text.parser import Source
from rasplens.errors import RaspLensError

Branch = Tree[Any]

DEEPEST = 100
"""Calls within calls: a function that calls itself would not end."""

BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "^": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Load = Callable[[str, Source, Branch], Mapping[str, Any]]
"""From the name of a file, who loads it and where, the values of that file's public names."""


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
    body: tuple[Branch, ...]
    result: Branch
    names: Names
    source: Source


@dataclass(eq=False)
class Names:
    """Names and their values; what is not known here is looked for around."""

    around: Names | None = None
    own: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> Any:
        """The value of a name; KeyError if there is none."""
        if name in self.own:
            return self.own[name]
        if self.around is None:
            raise KeyError(name)
        return self.around.find(name)

    def known(self) -> set[str]:
        """All names."""
        return {*self.own, *(self.around.known() if self.around else ())}


class Evaluation:
    """Runs the statements of one text, or of one call.

    Args:
        source: The text.
        names: What is known so far; assignments go there.
        load: Reads another file.
        depth: How many calls this one is in.
    """

    def __init__(self, source: Source, names: Names, load: Load, depth: int = 0) -> None:
        self.source, self.names, self.load, self.depth = source, names, load, depth

    def visit(self, tree: Branch) -> Any:
        """The value of a tree; what goes wrong in it is an error that points there."""
        try:
            return getattr(self, f"_on_{tree.data}")(tree)
        except RaspTextError:
            raise
        except (RaspLensError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise self.source.error(f"{error}", tree.meta) from None

    # Statements

    def _on_start(self, tree: Branch) -> None:
        for statement in tree.children:
            self.visit(statement)

    def _on_evaluated(self, tree: Branch) -> None:
        self.visit(tree.children[0])

    def _on_assigned(self, tree: Branch) -> None:
        names, values = self._names(tree.children[0]), self._values(tree.children[1])
        self._set(names, values[0] if len(values) == 1 else values)

    def _on_function(self, tree: Branch) -> None:
        name, parameters, *body, result = tree.children
        listed = tuple(self._names(parameters)) if parameters else ()
        self.names.own[str(name)] = Function(str(name), listed, tuple(body), result, self.names, self.source)

    def _on_loop(self, tree: Branch) -> None:
        names, over, *body = tree.children
        for value in self._items(over):
            self._set(self._names(names), value)
            for statement in body:
                self.visit(statement)

    def _on_loaded(self, tree: Branch) -> None:
        self.names.own.update(self.load(_text(str(tree.children[0])), self.source, tree))

    def _on_example(self, tree: Branch) -> None:
        self.names.own["set example"] = self.visit(tree.children[-1])

    def _on_shown(self, tree: Branch) -> None:
        """Asks the original's console to print; here the command line and the report show."""

    # Expressions

    def _on_named(self, tree: Branch) -> Any:
        name = str(tree.children[0])
        try:
            return self.names.find(name)
        except KeyError:
            close = difflib.get_close_matches(name, self.names.known(), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise self.source.error(f"there is no name {name!r}.{hint}", tree.meta) from None

    def _on_int(self, tree: Branch) -> int:
        return int(str(tree.children[0]))

    def _on_float(self, tree: Branch) -> float:
        return float(str(tree.children[0]))

    def _on_string(self, tree: Branch) -> str:
        return _text(str(tree.children[0]))

    def _on_list(self, tree: Branch) -> list[Any]:
        return self._values(tree.children[0]) if tree.children[0] else []

    def _on_dict(self, tree: Branch) -> dict[Any, Any]:
        entries = [entry for entry in tree.children if entry is not None]
        return {self._key(entry.children[0]): self.visit(entry.children[1]) for entry in entries}

    def _on_list_of(self, tree: Branch) -> list[Any]:
        value, names, over = tree.children
        return [inner.visit(value) for inner in self._each(names, over)]

    def _on_dict_of(self, tree: Branch) -> dict[Any, Any]:
        key, value, names, over = tree.children
        return {inner._key(key): inner.visit(value) for inner in self._each(names, over)}

    def _on_binary(self, tree: Branch) -> Any:
        left, symbol, right = self.visit(tree.children[0]), str(tree.children[1]), self.visit(tree.children[2])
        if symbol in BINARY:
            return elementwise(BINARY[symbol], symbol, left, right)
        selectors = [isinstance(part, rasp.Selector) for part in (left, right)]
        if any(selectors) and not all(selectors):
            raise RaspLensError(f"{symbol!r} joins two selectors, or two s-ops; not one of each.")
        if is_static(left) and is_static(right):
            return (left and right) if symbol == "and" else (left or right)
        return left & right if symbol == "and" else left | right

    def _on_negated(self, tree: Branch) -> Any:
        return negation(self.visit(tree.children[0]))

    def _on_signed(self, tree: Branch) -> Any:
        value = self.visit(tree.children[1])
        return elementwise(operator.neg if tree.children[0] == "-" else operator.pos, str(tree.children[0]), value)

    def _on_contained(self, tree: Branch) -> Any:
        value, container = self.visit(tree.children[0]), self.visit(tree.children[1])
        if not isinstance(container, (list, dict, str, tuple)) or not all(map(is_static, container)):
            raise RaspLensError("`in` asks whether something is in a list, a dict or a string of constants.")
        return elementwise(lambda one: one in container, "in", value)

    def _on_chosen(self, tree: Branch) -> Any:
        then, condition, otherwise = tree.children
        decided = self.visit(condition)
        if is_static(decided):
            return self.visit(then if decided else otherwise)
        return where(decided, self.visit(then), self.visit(otherwise))

    def _on_selected(self, tree: Branch) -> rasp.Selector:
        keys, queries, symbol = tree.children
        return select(self.visit(keys), self.visit(queries), str(symbol))

    def _on_indexed(self, tree: Branch) -> Any:
        of, index = self.visit(tree.children[0]), self.visit(tree.children[1])
        if isinstance(of, rasp.SOp):
            if not isinstance(index, int):
                raise RaspLensError("An s-op is indexed by a whole number: the value at that position.")
            position: Any = index if index >= 0 else rasp.length + index
            return rasp.Aggregate(select(rasp.indices, position, "=="), of, default=0)
        if not isinstance(of, (list, dict, str, tuple)):
            raise RaspLensError(f"{_shown(of)} cannot be indexed; lists, dicts, strings and s-ops can.")
        return elementwise(lambda one: _item(of, one), "index", index)

    def _on_called(self, tree: Branch) -> Any:
        function = self.visit(tree.children[0])
        values = self._values(tree.children[1]) if tree.children[1] else []
        if isinstance(function, Function):
            return self._call(function, values, tree)
        if not callable(function) or isinstance(function, rasp.RASPExpr):
            raise RaspLensError(f"{_shown(function)} is no function.")
        return function(*values)

    # Parts

    def _call(self, function: Function, values: list[Any], tree: Branch) -> Any:
        if len(values) != len(function.parameters):
            raise RaspLensError(
                f"{function.name!r} takes {len(function.parameters)} arguments "
                f"({', '.join(function.parameters)}); got {len(values)}."
            )
        if self.depth >= DEEPEST:
            raise self.source.error(f"{function.name!r} is called within itself without end.", tree.meta)
        names = Names(function.names, dict(zip(function.parameters, values, strict=True)))
        inner = Evaluation(function.source, names, self.load, self.depth + 1)
        for statement in function.body:
            inner.visit(statement)
        results = inner._values(function.result)
        return results[0] if len(results) == 1 else results

    def _values(self, tree: Branch) -> list[Any]:
        return [self.visit(child) for child in tree.children]

    def _names(self, tree: Branch) -> list[str]:
        return [str(child) for child in tree.children]

    def _set(self, names: list[str], value: Any) -> None:
        if len(names) == 1:
            self._assign(names[0], value)
            return
        if not isinstance(value, (list, tuple, str)) or len(value) != len(names):
            found = f"{len(value)} values" if isinstance(value, (list, tuple, str)) else _shown(value)
            raise RaspLensError(f"There are {len(names)} names ({', '.join(names)}) for {found}.")
        for name, one in zip(names, value, strict=True):
            self._assign(name, one)

    def _assign(self, name: str, value: Any) -> None:
        self.names.own.pop(name, None)  # names stand in the order of their last assignment
        self.names.own[name] = self._titled(value, name)

    def _titled(self, value: Any, name: str) -> Any:
        """An expression under the name it was given: the last one at the top, the first one in a function."""
        is_primitive = isinstance(value, (rasp.TokensType, rasp.IndicesType, rasp.LengthType))
        if not isinstance(value, rasp.RASPExpr) or is_primitive or (self.depth and "name" in value.annotations):
            return value
        return value.named(name)

    def _items(self, tree: Branch) -> list[Any]:
        over = self.visit(tree)
        if not isinstance(over, (list, dict, str, tuple)):
            raise self.source.error(f"a loop runs over a list or a dict; this is {_shown(over)}.", tree.meta)
        return list(over)

    def _each(self, names: Branch, over: Branch) -> Iterator[Evaluation]:
        for value in self._items(over):
            inner = Evaluation(self.source, Names(self.names), self.load, self.depth + 1)
            inner._set(self._names(names), value)
            yield inner

    def _key(self, tree: Branch) -> Any:
        key = self.visit(tree)
        if not isinstance(key, (bool, int, float, str)):
            raise self.source.error(
                f"a key is a number, a string or a truth value; this is {_shown(key)}.", tree.meta
            )
        return key


def _text(token: str) -> str:
    return token[1:-1]


def _item(of: Any, index: Any) -> Any:
    if isinstance(of, dict):
        if index not in of:
            raise RaspLensError(f"The dict has no key {index!r}; it has {', '.join(map(repr, of))}.")
        return of[index]
    if not isinstance(index, int) or not -len(of) <= index < len(of):
        raise RaspLensError(f"There is no item {index!r} among {len(of)}.")
    return of[index]


def _shown(value: Any) -> str:
    if isinstance(value, rasp.Selector):
        return "a selector"
    if isinstance(value, rasp.SOp):
        return "an s-op"
    return "a function" if isinstance(value, Function) or callable(value) else repr(value)
