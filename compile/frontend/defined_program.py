"""From an expression to a graph over finitely many values, checked for inputs on which it is undefined."""

from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter

from rasplens.compile import rasp
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.analysis.rounding import check_precision
from rasplens.compile.errors import CompileError, PrecisionError
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.frontend.undefined_inputs import DefinedOn, average_of_classes
from rasplens.compile.ir import FiniteGraph, Graph
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.interpreter import expressions

_HELD_APART = (
    rasp.TokensType,
    rasp.IndicesType,
    rasp.Full,
    rasp.ConstantSOp,
    rasp.Map,
    rasp.SequenceMap,
    rasp.LinearSequenceMap,
    rasp.Where,
    rasp.Aggregate,
)
"""The s-ops that can be held with one direction a value where they are numbers."""


def defined_program(
    program: rasp.SOp,
    space: InputSpace,
    on: DefinedOn,
    limits: CompileLimits = DEFAULT_LIMITS,
    apart: Collection[int] = (),
) -> tuple[Graph, FiniteGraph]:
    """The program as lowered and over finitely many values, checked for inputs on which it is undefined.

    An aggregate of classes that are numbers may turn out to average them: then it is compiled as a mean. A number
    whose values float32 cannot hold apart has one direction a value instead, where nothing averages it.

    Args:
        program: The s-op to compute.
        space: The inputs.
        on: Where it has to be defined.
        limits: How far to search.
        apart: Ids of numbers that are to have one direction a value in any case.

    Raises:
        CompileError: If some input is undefined where it may not be, with a smallest example.
        PrecisionError: If what is averaged or added up cannot be held apart.
    """
    _check_circles(program)
    _check_constants(program, space)
    averaged: set[int] = set()
    held_apart = set(apart)
    while True:
        graph = build_graph(program, averaged, held_apart)
        try:
            finite = reachable_values(graph, space, limits)
            check_precision(finite)
        except PrecisionError as error:
            if id(error.node) not in numbers_of(program) - held_apart - averaged:
                raise
            held_apart.add(id(error.node))
            continue
        mean = average_of_classes(program, finite, space, on, limits)
        if mean is None:
            return graph, finite
        if id(mean.expr) in averaged:
            raise AssertionError(f"the trace finds no value for {mean.name!r} where the interpreter does")
        averaged.add(id(mean.expr))


def numbers_of(program: rasp.SOp) -> set[int]:
    """The ids of s-ops that can have one direction a value where float32 cannot hold them apart."""
    return {id(expr) for expr in expressions(program) if isinstance(expr, _HELD_APART)}


def _check_circles(program: rasp.SOp) -> None:
    reads = {id(expr): [id(child) for child in expr.children] for expr in expressions(program)}
    try:
        TopologicalSorter(reads).prepare()
    except CycleError:
        raise CompileError(f"{program.name!r} reads itself, in a circle: it has no value.", program) from None


def _check_constants(program: rasp.SOp, space: InputSpace) -> None:
    for expr in expressions(program):
        if not isinstance(expr, rasp.ConstantSOp | rasp.ConstantSelector) or not expr.check_length:
            continue
        if (len(expr.value), space.max_len) != (1, 1):
            raise CompileError(
                f"{expr.name!r} is a constant of length {len(expr.value)}, and has no value on sequences of other "
                f"lengths from 1 to {space.max_len}. Give it check_length=False to cut or fill it.",
                expr,
            )
