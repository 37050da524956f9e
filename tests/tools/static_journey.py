"""How often a reader who follows one parameter through the source has to come back to a module that was left.

Nothing is run. The walk starts at a parameter of a function and reads the body in source order, inner calls first.
A call that is handed the parameter is followed into the function that it calls, depth first, and the walk goes on
there with the parameter that got it. Each function is read once for each of its parameters. Handed on is

- the name itself, or a name that is assigned from it;
- the result of a call that was handed it, or of a method of it, if that is a carrier by its annotation;
- a field of a carrier that is a carrier by its annotation, except those that hold another model;
- a tuple, list or dictionary with one of these, an item of it, and the variable of a loop over it.

Functions are found by imports, methods by annotations. In a loop over a table of a module, such as `CLAIMS`,
`kind.test(study)` calls the function or lambda that each row gives as `test=`; such a loop is read row by row.
Only functions of one package are entered. Constructors are not: they keep what they are handed. A function that
is defined in a body is read where it stands.

A stay is a run of steps in one module. A step is a function that is entered, or its caller that is come back to
because it hands the parameter on to another new function. A return is a stay in a module that had been left
before, in which a new function is entered: to come back to the caller alone is none.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import NamedTuple


class Stay(NamedTuple):
    """A run of steps in one module: the functions that are entered, and whether it is a return."""

    module: str
    entered: tuple[str, ...]
    is_return: bool


class Definition(NamedTuple):
    """What a name stands for in a module; of a method or a field, also its class."""

    module: str
    node: ast.AST
    owner: "Definition | None" = None


Classes = Mapping[str, Definition | None]
"""The class of each name, where it is known."""


class Territory(NamedTuple):
    """The package that is walked in, below a folder; the names of its carriers, and of their fields to pass by."""

    root: Path
    package: str
    carriers: Collection[str] = ()
    others: Collection[str] = ()


def static_stays(territory: Territory, module: str, function: str, parameter: str) -> list[Stay]:
    """The stays of what is handed to a parameter of a function."""
    start = _find(territory.root, module, function)
    if start is None:
        raise ValueError(f"{module} has no function {function!r}.")
    steps = _steps(territory, start, {parameter: None}, {(start.node, parameter)})
    stays: list[Stay] = []
    for of_module, run in groupby(steps, key=lambda step: step[0]):
        entered = tuple(name for _, name in run if name)
        stays.append(Stay(of_module, entered, bool(entered) and of_module in {stay.module for stay in stays}))
    return stays


def _steps(
    territory: Territory, function: Definition, handed: Classes, seen: set[tuple[ast.AST, str]]
) -> Iterator[tuple[str, str]]:
    """Each step: a module, and the function that is entered; no function where the caller is come back to."""
    root, module, node, owner = territory.root, *function
    yield module, getattr(node, "name", "lambda")
    parameters = [each for each in ast.walk(node.args) if isinstance(each, ast.arg)]
    annotated = {each.arg: _class(root, module, each.annotation) or handed.get(each.arg) for each in parameters}
    body = _Body(territory, module, set(handed), {"self": owner, "cls": owner} | annotated)
    for called, given in body.calls(node.body if isinstance(node.body, list) else [node.body]):
        new = {name: of_class for name, of_class in given.items() if (called.node, name) not in seen}
        if new and f"{called.module}.".startswith(f"{territory.package}."):
            seen |= {(called.node, name) for name in new}
            yield module, ""
            yield from _steps(territory, called, new, seen)


@dataclass
class _Body:
    """The body of a function while it is read: which names are followed, and what is known of names."""

    territory: Territory
    module: str
    followed: set[str]
    classes: dict[str, Definition | None]
    rows: dict[str, Definition] = field(default_factory=dict)

    def calls(self, nodes: Iterable[ast.AST]) -> Iterator[tuple[Definition, Classes]]:
        """Each call of a function that is handed what is followed, and the parameters that get it."""
        for node in nodes:
            match node:
                case ast.For(target=ast.Name(id=name), iter=ast.Name() as table) if rows := self._rows(table):
                    for row in rows:
                        self.rows[name] = row
                        yield from self.calls(node.body)
                    continue
                case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                    self._bind(target, value)
                case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value):
                    self._bind(target, value)
                case ast.NamedExpr(target=target, value=value):
                    self._bind(target, value)
            loops_first = sorted(
                ast.iter_child_nodes(node), key=lambda child: not isinstance(child, ast.comprehension)
            )
            yield from self.calls(loops_first)
            match node:
                case (
                    ast.Call(func=ast.Name(id="partial"), args=[function, *args], keywords=keywords)
                    | ast.Call(func=function, args=args, keywords=keywords)
                ):
                    yield from self._handed(self._called(function), args, keywords)

    def _handed(
        self, called: Definition | None, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> Iterator[tuple[Definition, Classes]]:
        if called is None or not isinstance(called.node, ast.FunctionDef | ast.Lambda):
            return
        names = [each.arg for each in (*called.node.args.posonlyargs, *called.node.args.args)]
        names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        rest = repeat(called.node.args.vararg.arg) if called.node.args.vararg else ()
        given = [*zip(chain(names, rest), args, strict=False), *((each.arg, each.value) for each in keywords)]
        found = [(name, *self._look(value)) for name, value in given if name is not None]
        if handed := {name: of_class for name, is_followed, of_class in found if is_followed}:
            yield called, handed

    def _look(self, node: ast.AST | None) -> tuple[bool, Definition | None]:
        """Whether an expression is followed, and its class; of a collection, that of what it holds."""
        match node:
            case ast.Name(id=name):
                return name in self.followed, self.classes.get(name)
            case ast.Starred(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
                return self._look(value)
            case ast.Call(func=ast.Attribute(value=value, attr="items" | "values")):
                return self._look(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                return max((self._look(part) for part in parts), key=lambda found: found[0], default=(False, None))
            case ast.IfExp(body=value, orelse=other):
                return max(self._look(value), self._look(other), key=lambda found: found[0])
            case ast.Attribute(value=value, attr=name):
                is_followed, owner = self._look(value)
                of_class = self._result(owner and _member(self.territory.root, owner, name))
                is_other = name in self.territory.others
                return is_followed and self._is_carrier(of_class) and not is_other, of_class
            case ast.Call(func=function, args=args, keywords=keywords):
                of_class = self._result(self._called(function))
                handed = [*args, *(each.value for each in keywords), getattr(function, "value", None)]
                return self._is_carrier(of_class) and any(self._look(each)[0] for each in handed), of_class
        return False, None

    def _is_carrier(self, of_class: Definition | None) -> bool:
        return of_class is not None and of_class.node.name in self.territory.carriers

    def _result(self, called: Definition | None) -> Definition | None:
        """The class of what a call gives, or of a field."""
        match called:
            case Definition(node=ast.ClassDef()):
                return called
            case Definition(node=ast.FunctionDef(returns=annotation) | ast.AnnAssign(annotation=annotation)):
                return _class(self.territory.root, called.module, annotation)
        return None

    def _called(self, function: ast.AST) -> Definition | None:
        root = self.territory.root
        match function:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if row := self.rows.get(name):
                given = next(
                    (each.value for each in row.node.keywords if each.arg == attribute), ast.Constant(None)
                )
                is_lambda = isinstance(given, ast.Lambda)
                return Definition(row.module, given) if is_lambda else _find(root, row.module, ast.unparse(given))
            case ast.Attribute(value=value, attr=attribute) if owner := self._look(value)[1]:
                return _member(root, owner, attribute)
        name = ast.unparse(function)
        return None if name.split(".")[0] in self.classes else _find(root, self.module, name)

    def _rows(self, table: ast.Name) -> list[Definition]:
        """The rows of a table of the module: calls that have names of their own."""
        found = _find(self.territory.root, self.module, table.id)
        if found is None or not isinstance(found.node, ast.Tuple | ast.List):
            return []
        rows = [_find(self.territory.root, found.module, ast.unparse(each)) for each in found.node.elts]
        return [row for row in rows if row is not None and isinstance(row.node, ast.Call)]

    def _bind(self, target: ast.AST, value: ast.AST | None) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                for each, its_value in zip(targets, values, strict=True):
                    self._bind(each, its_value)
            case ast.Tuple(elts=[*_, last]), _:  # the value in a loop over items
                self._bind(last, value)
            case ast.Name(id=name), _:
                is_followed, of_class = self._look(value)
                self.followed |= {name} if is_followed else set()
                self.classes[name] = of_class or self.classes.get(name)


def _find(root: Path, module: str, name: str) -> Definition | None:
    """What a dotted name stands for in a module, imports followed."""
    first, _, rest = name.partition(".")
    match _names(root, module).get(first):
        case None:
            return None
        case (source, original) if rest and _path(root, f"{source}.{original}").exists():
            return _find(root, f"{source}.{original}", rest)
        case (source, original):
            found = None if (source, original) == (module, first) else _find(root, source, original)
        case node:
            found = Definition(module, node)
    return _member(root, found, rest) if found and rest else found


@cache
def _names(root: Path, module: str) -> dict[str, ast.AST | tuple[str, str]]:
    """The nodes that a module defines, by name; of what it imports, the module and the name there."""
    path = _path(root, module)
    tree = ast.parse(path.read_text() if path.exists() else "")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names: dict[str, ast.AST | tuple[str, str]] = {
        each.asname or each.name: (node.module or "", each.name) for node in imports for each in node.names
    }
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names[name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.AST() as value):
                names[name] = value
    return names


def _path(root: Path, module: str) -> Path:
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _member(root: Path, owner: Definition, name: str) -> Definition | None:
    """A method or a field of a class, its own or inherited."""
    if not isinstance(owner.node, ast.ClassDef):
        return None
    for node in owner.node.body:
        match node:
            case ast.FunctionDef(name=own) | ast.AnnAssign(target=ast.Name(id=own)) if own == name:
                return Definition(owner.module, node, owner)
    bases = (_class(root, owner.module, base) for base in owner.node.bases)
    return next((found for base in bases if base and (found := _member(root, base, name))), None)


def _class(root: Path, module: str, annotation: ast.AST | None) -> Definition | None:
    """The first class of the package that an annotation names."""
    match annotation:
        case ast.Constant(value=str(text)):
            return _class(root, module, ast.parse(text, mode="eval").body)
        case ast.BinOp(left=left, right=right):
            return _class(root, module, left) or _class(root, module, right)
        case ast.Name() | ast.Attribute():
            found = _find(root, module, ast.unparse(annotation))
            return found if found and isinstance(found.node, ast.ClassDef) else None
    return None
