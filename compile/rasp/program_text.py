"""A program as text: one line for each expression that has a name or is read twice, as Python would have it."""

import ast
import copy
import linecache
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from types import CodeType
from typing import Any

from rasplens.compile.rasp import language as rasp
from rasplens.compile.rasp.interpreter import expressions

SYMBOLS: Mapping[type, str] = {rasp.SelectorAnd: "&", rasp.SelectorOr: "|"}

LONGEST = 88
"""The longest line, in characters; parts of a longer one get names of their own."""


def program_text(program: rasp.RASPExpr) -> str:
    """The program, its result in the last line.

    Functions are shown by their source where Python still has it, with the values that they captured, else by
    their name. A stored program has lost them: tables stand in their place.

    Example:
        >>> from rasplens.compile import programs
        >>> print(program_text(programs.offset(3)))
        one_period_back = Select(indices, indices, lambda key, query: key == query - (3 - 1))
        offset = Aggregate(one_period_back, tokens)
    """
    return "\n".join(program_lines([program])[0])


def program_lines(
    programs: Sequence[rasp.RASPExpr], taken: Collection[str] = ()
) -> tuple[list[str], Mapping[int, str]]:
    """The lines of several programs together, with a line for each of them, and what stands for each expression.

    Args:
        programs: The programs.
        taken: Names that stand for something else.
    """
    order = list({id(expr): expr for program in programs for expr in expressions(program)}.values())
    readers = Counter(id(child) for expr in order for child in expr.children)
    roots, lines, said = {*map(id, programs)}, list[str](), dict[int, str]()
    taken = {primitive.name for primitive in rasp.PRIMITIVES.values()} | {"tokens", "indices", "length", *taken}
    for expr in order:
        text = _text(expr, said)
        has_line = id(expr) in roots or (
            expr.children and (_has_own_name(expr) or readers[id(expr)] > 1 or len(text) > LONGEST)
        )
        if not has_line:
            said[id(expr)] = text
            continue
        said[id(expr)] = name = _free_name(expr.name, taken)
        taken.add(name)
        lines.append(f"{name} = {text[1:-1] if text.startswith('(') else text}")
    return lines, said


def _has_own_name(expr: rasp.RASPExpr) -> bool:
    """Whether a person named it: operators name what they build by its formula."""
    return "name" in expr.annotations and not expr.name.startswith("(")


def _free_name(name: str, taken: set[str]) -> str:
    """A name that Python takes and that stands for nothing else."""
    plain = re.sub(r"\W+", "_", name).strip("_").lower() or "value"
    plain = f"_{plain}" if plain[0].isdigit() else plain
    numbered = (f"{plain}_{i}" for i in range(2, len(taken) + 3))
    return plain if plain not in taken else next(other for other in numbered if other not in taken)


def _text(expr: rasp.RASPExpr, said: Mapping[int, str]) -> str:
    """One expression, what it reads as it was said before, and how it is to be held if not by value."""
    text = _plain_text(expr, said)
    if isinstance(expr, rasp.SOp) and rasp.is_numerical(expr):
        return f"numerical({text[1:-1] if text.startswith('(') else text})"
    return text


def _plain_text(expr: rasp.RASPExpr, said: Mapping[int, str]) -> str:
    reads = [said[id(child)] for child in expr.children]
    if isinstance(expr, rasp.TokensType | rasp.IndicesType | rasp.LengthType):
        return type(expr).__name__.removesuffix("Type").lower()
    if type(expr) in SYMBOLS:
        return f"({reads[0]} {SYMBOLS[type(expr)]} {reads[1]})"
    if isinstance(expr, rasp.SelectorNot):
        return f"~{reads[0]}"
    if isinstance(expr, rasp.Map | rasp.SequenceMap):
        formula = rasp.formula(expr.f, reads)
        if formula is not None:
            return formula
    arguments = [_argument(getattr(expr, f.name), said) for f in fields(expr) if f.name != "annotations"]
    if isinstance(expr, rasp.Aggregate) and expr.default is None:
        arguments.pop()
    if isinstance(expr, rasp.ConstantSOp | rasp.ConstantSelector):
        arguments.pop()
    return f"{type(expr).__name__}({', '.join(arguments)})"


def _argument(argument: Any, said: Mapping[int, str]) -> str:
    if isinstance(argument, rasp.RASPExpr):
        return said[id(argument)]
    if isinstance(argument, rasp.ComparisonPredicate):
        return f"Comparison.{argument.name}"
    return function_text(argument) if callable(argument) else repr(argument)


def function_text(function: Callable[..., Any]) -> str:
    """A function by its name; a lambda as it was written, with the values that it captured."""
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if name != "<lambda>" or code is None:
        return str(name)
    body = _lambda_body(code)
    arguments = ", ".join(code.co_varnames[: code.co_argcount])
    if body is None:
        return f"lambda {arguments}: ..."
    captured = dict(
        zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True)
    )
    return f"lambda {arguments}: {ast.unparse(_WithValues(captured).visit(body))}"


def _lambda_body(code: CodeType) -> ast.expr | None:
    """The expression that a lambda returns, from its source; None if that is gone, or says something else."""
    used = [place for place in code.co_positions() if None not in place and place[2] != place[3]]
    if not used:
        return None
    first = min((line, start) for line, _, start, _ in used)
    last = max((line, end) for _, line, _, end in used)
    around = [
        found.body
        for found in _lambdas(code.co_filename, tuple(linecache.getlines(code.co_filename)))
        if tuple(argument.arg for argument in found.args.args) == code.co_varnames[: code.co_argcount]
        and (found.body.lineno, found.body.col_offset) <= first
        and last <= (found.body.end_lineno or 0, found.body.end_col_offset or 0)
    ]
    innermost = max(around, key=lambda body: (body.lineno, body.col_offset), default=None)
    return copy.deepcopy(innermost)


@lru_cache(maxsize=64)
def _lambdas(file: str, lines: tuple[str, ...]) -> list[ast.Lambda]:
    """The lambdas of a source file; none if it is no Python."""
    try:
        tree = ast.parse("".join(lines), file)
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]


class _WithValues(ast.NodeTransformer):
    """Puts the values that a function captured in the place of their names, where they are plain ones."""

    def __init__(self, values: Mapping[str, Any]):
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id, ...)
        return ast.Constant(value) if isinstance(value, bool | int | float | str) or value is None else node
