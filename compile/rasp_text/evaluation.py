"""From a syntax tree to the values of its names: numbers, strings, lists, functions, s-ops and selectors.

What is known beforehand is computed here: loops over lists, calls, choices by constants. What depends on the input
becomes an s-op or a selector. Source: Weiss et al. 2021, "Thinking Like Transformers", and its published grammar.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lark import Tree

from rasplens.compile import rasp
from rasplens.compile.errors import RaspTextError
from rasplens.compile.rasp_text.bounds import StepBudget, bounded, check_bits
from rasplens.compile.rasp_text.builtins import COMPARISONS, contained, mapped, negation, select, where
from rasplens.compile.rasp_text.kinds import is_atom, is_static, kind_of
from rasplens.compile.rasp_text.names import RESERVED, Function, Names
from rasplens.compile.rasp_text.operators import joined
from rasplens.compile.rasp_text.parser import Source
from rasplens.errors import RaspLensError

Branch = Tree[Any]

LONGEST_NAME = 40
"""The characters of an unknown name that are compared with known names."""

DEEPEST = 100
"""The deepest nesting of calls: a function that calls itself would not end."""

Load = Callable[[str, Source, Branch], Mapping[str, Any]]
"""Loads a file by name, for the text and the statement that ask for it: the values of its public names."""


class TextEvaluation:
    """Runs the statements of one text, or of one call.

    Args:
        source: The text.
        names: What is known so far; assignments go there.
        load: Reads another file.
        steps: The steps that are left.
        depth: How many calls this one is in.
    """

    def __init__(self, source: Source, names: Names, load: Load, steps: StepBudget, depth: int = 0) -> None:
        self.source, self.names, self.load, self.steps, self.depth = source, names, load, steps, depth

    def visit(self, tree: Branch) -> Any:
        """The value of a tree; what goes wrong in it is an error that points there."""
        try:
            self.steps.take()
            return getattr(self, f"_on_{tree.data}")(tree)
        except RaspTextError:
            raise
        except RecursionError:
            raise self.source.error("this is nested too deeply.", tree.meta) from None
        except (RaspLensError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise self.source.error(f"{error}", tree.meta) from None

    # Statements

    def _on_start(self, tree: Branch) -> None:
        for statement in tree.children:
            self.visit(statement)

    def _on_evaluated(self, tree: Branch) -> None:
        expression = tree.children[0]
        if expression.data == "called" and not is_static(self.visit(expression.children[0])):
            self._check_example(self._values(expression.children[1]) if expression.children[1] else [])
            return
        self.visit(expression)

    def _on_assigned(self, tree: Branch) -> None:
        names, values = self._names(tree.children[0]), self._values(tree.children[1])
        self._set(names, values[0] if len(values) == 1 else values)

    def _on_function(self, tree: Branch) -> None:
        name, parameters, *body, result = tree.children
        listed = tuple(self._names(parameters)) if parameters else ()
        for parameter in RESERVED.intersection(listed):
            raise RaspLensError(f"{parameter!r} is built in and cannot be redefined. Choose another name.")
        self.names.check_settable(str(name))
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
        example = self.visit(tree.children[-1])
        self._check_example([example])
        self.names.own["set example"] = example

    def _on_drawn(self, tree: Branch) -> None:
        of, *example = (self.visit(child) for child in tree.children if child is not None)
        if not isinstance(of, rasp.SOp):
            raise RaspLensError(f"draw takes an s-op; got {kind_of(of)}.")
        self._check_example(example or [""])

    def _on_shown(self, tree: Branch) -> None:
        """Asks the original's console to print; here the command line and the report show."""

    # Expressions

    def _on_named(self, tree: Branch) -> Any:
        name = str(tree.children[0])
        try:
            return self.names.find(name)
        except KeyError:
            if name == "out":
                raise RaspLensError(
                    "`out`, the console's last result, is not available here. Assign the result to a name."
                ) from None
            close = difflib.get_close_matches(name[:LONGEST_NAME], self.names.known(), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise self.source.error(f"there is no name {name!r}.{hint}", tree.meta) from None

    def _on_int(self, tree: Branch) -> int:
        digits = str(tree.children[0])
        check_bits(len(digits))  # there are more bits than digits, and Python reads no more than some thousands
        return int(bounded(int(digits)))

    def _on_float(self, tree: Branch) -> float:
        value = float(str(tree.children[0]))
        if math.isinf(value):
            raise RaspLensError("This number is larger than any float.")
        return value

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
        if symbol in COMPARISONS:
            self.steps.take_through(left, right)
        return self._sized(joined(symbol, left, right))

    def _on_negated(self, tree: Branch) -> Any:
        return negation(self.visit(tree.children[0]))

    def _on_signed(self, tree: Branch) -> Any:
        sign, value = str(tree.children[0]), self.visit(tree.children[1])
        return mapped(operator.neg if sign == "-" else operator.pos, sign, value)

    def _on_contained(self, tree: Branch) -> Any:
        value, container = self.visit(tree.children[0]), self.visit(tree.children[1])
        self.steps.take_through(value, container)
        return contained(value, container)

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
                raise RaspLensError(f"The index of an s-op is a position, a whole number; got {kind_of(index)}.")
            position: Any = index if index >= 0 else rasp.length + index
            return rasp.Aggregate(select(rasp.indices, position, "=="), of, default=0)
        if not isinstance(of, (list, dict, str, tuple)):
            raise RaspLensError(f"{kind_of(of)} cannot be indexed; lists, dicts, strings and s-ops can.")
        return mapped(lambda one: _item(of, one), "index", index)

    def _on_called(self, tree: Branch) -> Any:
        function = self.visit(tree.children[0])
        values = self._values(tree.children[1]) if tree.children[1] else []
        if isinstance(function, Function):
            return self._sized(self._call(function, values, tree))
        if isinstance(function, rasp.RASPExpr):
            raise RaspLensError(f"{kind_of(function)} can be applied to an input only as a statement of its own.")
        if not callable(function):
            raise RaspLensError(f"{kind_of(function)} is not a function.")
        return self._sized(function(*values))

    # Parts

    def _sized(self, value: Any) -> Any:
        """The value; its items are steps."""
        if isinstance(value, (list, dict, str)):
            self.steps.take(len(value))
        return value

    def _check_example(self, examples: list[Any]) -> None:
        """Raises where inputs to be shown are not one string or list."""
        if len(examples) != 1 or not isinstance(examples[0], (str, list)):
            raise RaspLensError(
                f"An input must be one string or list; got {', '.join(map(kind_of, examples)) or 'none'}."
            )

    def _call(self, function: Function, values: list[Any], tree: Branch) -> Any:
        if len(values) != len(function.parameters):
            raise RaspLensError(
                f"{function.name!r} takes {len(function.parameters)} arguments "
                f"({', '.join(function.parameters)}); got {len(values)}."
            )
        if self.depth >= DEEPEST:
            raise self.source.error(
                f"{function.name!r} is called at depth {DEEPEST}: a function must not call itself.", tree.meta
            )
        names = Names(function.names, dict(zip(function.parameters, values, strict=True)))
        inner = TextEvaluation(function.source, names, self.load, self.steps, self.depth + 1)
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
            found = f"{len(value)} values" if isinstance(value, (list, tuple, str)) else kind_of(value)
            raise RaspLensError(f"{len(names)} names ({', '.join(names)}) need as many values; got {found}.")
        for name, one in zip(names, value, strict=True):
            self._assign(name, one)

    def _assign(self, name: str, value: Any) -> None:
        self.names.check_settable(name)
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
            raise self.source.error(f"a loop needs a list, a dict or a string; got {kind_of(over)}.", tree.meta)
        return list(over)

    def _each(self, names: Branch, over: Branch) -> Iterator[TextEvaluation]:
        for value in self._items(over):
            inner = TextEvaluation(self.source, Names(self.names), self.load, self.steps, self.depth + 1)
            inner._set(self._names(names), value)
            yield inner

    def _key(self, tree: Branch) -> Any:
        key = self.visit(tree)
        if not is_atom(key):
            raise self.source.error(
                f"a key must be a number, a string or a truth value; got {kind_of(key)}.", tree.meta
            )
        return key


def _text(token: str) -> str:
    return token[1:-1]


def _item(of: Any, index: Any) -> Any:
    if isinstance(of, dict):
        if index not in of:
            raise RaspLensError(f"The dict has no key {index!r}; it has {', '.join(map(kind_of, of))}.")
        return of[index]
    if not isinstance(index, int) or not -len(of) <= index < len(of):
        raise RaspLensError(f"There is no item {index!r}; the number of items is {len(of)}.")
    return of[index]
