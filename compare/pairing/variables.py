"""Which variables a compiled model has directions for, and what their values on some inputs say of each other.

Some s-ops it holds only as far as those who read them tell their values apart: by their kind. A selector of tokens
that occur twice reads of a count whether it is large. The compiler then computes just that, and the count is
nowhere.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from rasplens.compile import CompiledModel, Variable
from rasplens.compile.rasp import Aggregate, RASPExpr, Select, SelectorWidth, SOp, Value
from rasplens.compile.rasp.interpreter import expressions
from rasplens.model.hook_points import EMBEDDED

MOST_COMMON = 0.95
"""A variable counts as constant at a position if its commonest value covers more than this share of inputs."""


def own_variables(compiled: CompiledModel) -> dict[str, Variable]:
    """The variables with directions of their own: s-ops that are no mere views of others, and kinds."""
    return {name: one for name, one in compiled.variables.items() if one.is_own} | kinds(compiled)


def varies(codes: np.ndarray) -> bool:
    """Whether a variable takes more than one value often enough to be told apart."""
    _, counts = np.unique(codes, return_counts=True)
    return bool(counts.max() <= MOST_COMMON * len(codes))


def determines(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the second variable is a function of the first, on the inputs at hand."""
    pairs = np.unique(np.stack([first, second]), axis=1)
    return pairs.shape[1] == len(np.unique(first))


def kinds(compiled: CompiledModel) -> dict[str, Variable]:
    """By name, the kinds that are all that a model holds of some s-op which it computes.

    Of an s-op that is read in several places, each of them may have a kind of its own. To set one of these says
    nothing of the s-op, so that such kinds are left out.
    """
    variables = compiled.variables
    found = {
        name: one
        for name, one in variables.items()
        if one.kind_of is not None and not one.is_view and one.written_at != EMBEDDED
        if not ((s_op := variables.get(one.kind_of)) and s_op.is_own)
    }
    known = _read_in_one_place(compiled) if found else set()
    return {name: one for name, one in found.items() if one.kind_of in known}


def _read_in_one_place(compiled: CompiledModel) -> set[str]:
    """The names of s-ops that only one head gathers by, or gathers, and by one side of its selector."""
    readers: dict[int, list[RASPExpr]] = defaultdict(list)
    named: dict[str, list[tuple[int, RASPExpr]]] = defaultdict(list)
    for place, expr in enumerate(expressions(compiled.program)):
        named[expr.name].append((place, expr))
        for child in expr.children:
            readers[id(child)].append(expr)
    return {
        name
        for name, ((place, one), *others) in named.items()
        if isinstance(one, SOp) and not others and _has_one_reader(one, compiled.arguments.get(place, ()), readers)
    }


def _has_one_reader(expr: RASPExpr, values: Sequence[Value], readers: Mapping[int, Sequence[RASPExpr]]) -> bool:
    """Whether an expression of some values, and each that reads it, has one reader, up to what gathers."""
    first, *others = readers.get(id(expr), ()) or (None,)
    if isinstance(first, Select) and len(others) == 1 and others[0] is first and _ignores_one_side(first, values):
        others = []  # its keys and its queries, of which one does not matter
    while first is not None and not others:
        if isinstance(first, Aggregate | SelectorWidth):
            return True
        first, *others = readers.get(id(first), ()) or (None,)
    return not others


def _ignores_one_side(select: Select, values: Sequence[Value]) -> bool:
    try:
        table = np.array([[bool(select.predicate(key, query)) for query in values] for key in values], ndmin=2)
    except Exception:  # a predicate of the user's that is undefined there
        return False
    return bool(values) and bool((table == table[:1]).all() or (table == table[:, :1]).all())
