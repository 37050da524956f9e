"""From an expression to a graph over finitely many values, checked for inputs on which it is undefined."""

from collections.abc import Collection, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.analysis.domains import Averaged, NotANumberError, ReadsNumbersError, ValuesError
from rasplens.compile.analysis.reachable_values import reachable_values, values_read
from rasplens.compile.analysis.rounding import check_precision
from rasplens.compile.errors import CompileError, PrecisionError
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.frontend.undefined_inputs import DefinedOn, average_of_classes, check_defined_within
from rasplens.compile.ir import FiniteGraph, Graph
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
    averages: dict[int, rasp.Aggregate] = {}
    made_of: dict[int, Averaged] = {}
    held_apart = set(apart)
    is_run = False
    while True:
        graph = build_graph(program, made_of, held_apart)
        try:
            finite = reachable_values(graph, space, limits, is_run)
            check_precision(finite)
        except ReadsNumbersError as found:
            if id(found.node) in made_of or id(found.node) not in map(id, expressions(program)):
                raise AssertionError(f"{found.node.name!r} reads numbers already") from None
            made_of[id(found.node)] = found.averaged
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
        if mean is not None:
            if id(mean.expr) in averages or not isinstance(mean.expr, rasp.Aggregate):
                raise AssertionError(f"the trace finds no value for {mean.name!r} where the interpreter does")
            averages[id(mean.expr)] = mean.expr
        reads = [(graph.node_of[id(one.selector)], graph.node_of[id(one.sop)]) for one in averages.values()]
        found_read = dict(zip(averages, values_read(finite, reads, space, limits, is_run), strict=True))
        known = {i: _joined(made_of.get(i), now) for i, now in found_read.items()}
        if all(made_of.get(i) == now for i, now in known.items()):
            check_defined_within(program, space, on)
            return graph, finite
        made_of = known  # means that were not known may have hidden what others read


def _joined(before: Averaged | None, now: Averaged) -> Averaged:
    """What a number is made of, as found before and now."""
    if before is None:
        return now
    return Averaged(_union(before.values, now.values), _union(before.read, now.read))


def _union(first: Sequence[Value], second: Sequence[Value]) -> tuple[Value, ...]:
    return tuple({value_key(value): value for value in (*first, *second)}.values())


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
