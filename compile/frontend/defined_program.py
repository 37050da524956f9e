"""From an expression to a graph over finitely many values, checked for inputs on which it is undefined."""

from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.analysis.domains import Averaged, NotANumberError, ReadsNumbersError, ValuesError
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.analysis.rounding import check_precision
from rasplens.compile.errors import CompileError, PrecisionError
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.frontend.undefined_inputs import DefinedOn, average_of_classes
from rasplens.compile.ir import AggregateNode, FiniteGraph, Graph
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.interpreter import expressions
from rasplens.compile.rasp.values import value_key

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
    made_of: dict[int, Averaged] = {}
    held_apart = set(apart)
    is_run = False
    while True:
        graph = build_graph(program, made_of, held_apart)
        try:
            finite = reachable_values(graph, space, limits, is_run)
            check_precision(finite)
        except ReadsNumbersError as found:
            _note(made_of, found.node, found.averaged, program)
            continue
        except CompileError as error:
            if not is_run and space.size <= limits.executed_inputs:
                is_run = True  # what no input reaches is no reason to refuse
                continue
            is_number = id(error.node) in numbers_of(program) - held_apart - made_of.keys()
            if not (isinstance(error, PrecisionError) and is_number):
                raise _explained(error, space, is_run) from None
            held_apart.add(id(error.node))
            continue
        mean = average_of_classes(program, finite, space, on, limits)
        if mean is None:
            return graph, finite
        _note(made_of, mean.expr, _averaged(mean, finite), program)


def _explained(error: CompileError, space: InputSpace, is_run: bool) -> CompileError:
    """The error with an input that shows it; or that perhaps none does, where they are too many to be run."""
    kind = PrecisionError if isinstance(error, PrecisionError) else CompileError
    if not is_run and isinstance(error, ValuesError | PrecisionError):
        hint = (
            f"Perhaps no input comes to that, but all {space.size:,} are too many to be run: give those that the "
            "program is for as `domain`, or raise executed_inputs of CompileLimits."
        )
        return kind(f"{error} {hint}", error.node)
    example = _example(error, space) if isinstance(error, NotANumberError) else None
    return error if example is None else kind(f"{error} It is so on {example}.", error.node)


def _example(error: NotANumberError, space: InputSpace) -> list[Value] | None:
    """A smallest input on which an s-op is a value that is no number, or fails because it adds one up."""
    tables = BatchInterpreter(error.node, space.vocab, space.visible)
    for ids in space.all_ids():
        codes, fails = tables(ids)
        wanted = [code for code, value in enumerate(tables.values) if value_key(value) == value_key(error.value)]
        adds_up = isinstance(error.node, rasp.LinearSequenceMap)
        shown = fails if adds_up else np.isin(codes, wanted).any(axis=1) & ~fails
        if shown.any():
            return [space.vocab[token] for token in ids[shown.argmax()]]
    return None


def _note(made_of: dict[int, Averaged], expr: rasp.RASPExpr, averaged: Averaged, program: rasp.SOp) -> None:
    if id(expr) in made_of or id(expr) not in map(id, expressions(program)):
        raise AssertionError(f"{expr.name!r} is a mean already")
    made_of[id(expr)] = averaged


def _averaged(mean: AggregateNode, finite: FiniteGraph) -> Averaged:
    """What an aggregate of classes averages: of what its s-op can be, what it selects."""
    values = finite.variable(mean.inputs[1]).values
    own = {value_key(value) for value in mean.values}
    return Averaged(values, tuple(value for value in values if value_key(value) in own))


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
        if space.lengths != {len(expr.value)}:
            raise CompileError(
                f"{expr.name!r} is a constant of length {len(expr.value)}, and has no value on sequences of other "
                f"lengths from 1 to {space.max_len}. Give it check_length=False to cut or fill it.",
                expr,
            )
