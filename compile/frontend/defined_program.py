"""From an expression to a graph over finitely many values, checked for inputs on which it is undefined."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.analysis.domains import NotANumberError, ReadsNumbersError, ValuesError
from rasplens.compile.analysis.reachable_values import reachable_values, values_read
from rasplens.compile.analysis.rounding import check_precision
from rasplens.compile.errors import CompileError, PrecisionError
from rasplens.compile.frontend.checks import check_expressions
from rasplens.compile.frontend.encodings import Encodings, encodings_of
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.frontend.undefined_inputs import (
    DefinedOn,
    UndefinedInput,
    average_of_classes,
    check_defined_within,
    refusal,
)
from rasplens.compile.ir import FiniteGraph, Graph
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.interpreter import expressions
from rasplens.compile.rasp.values import value_key


class Defined(NamedTuple):
    """A program that is defined where it has to be.

    Attributes:
        lowered: As it is lowered.
        whole: The same over finitely many values.
        small: What is made of that.
    """

    lowered: Graph
    whole: FiniteGraph
    small: FiniteGraph


def defined_program(
    program: rasp.SOp,
    space: InputSpace,
    on: DefinedOn,
    limits: CompileLimits = DEFAULT_LIMITS,
    made_small: Callable[[FiniteGraph], FiniteGraph] = lambda whole: whole,
) -> Defined:
    """A program over finitely many values, its encodings decided, checked for inputs on which it is undefined.

    Args:
        program: The s-op to compute.
        space: The inputs.
        on: Where it has to be defined.
        limits: How far to search.
        made_small: The passes. What they leave of a number may be drowned by what they took out: then it has one
            direction a value.

    Raises:
        CompileError: If some input is undefined where it may not be, with a smallest example.
        PrecisionError: If what is averaged or added up cannot be held apart.
    """
    check_expressions(expressions(program), space)
    at_first = encodings = encodings_of(program)
    while True:
        lowered = build_graph(program, encodings)
        found = _values_or_encodings(lowered, encodings, space, on, limits)
        if isinstance(found, UndefinedInput):
            raise refusal(program, found.tokens, space, on)
        if isinstance(found, Encodings):
            encodings = found
            continue
        check_defined_within(program, space, on)
        small = made_small(found)
        try:
            check_precision(small)
        except PrecisionError as error:
            if not at_first.can_be_held_apart(error.node):
                raise
            at_first = encodings = at_first.held_apart(error.node)
            continue
        return Defined(lowered, found, small)


def _values_or_encodings(
    lowered: Graph, encodings: Encodings, space: InputSpace, on: DefinedOn, limits: CompileLimits
) -> FiniteGraph | Encodings | UndefinedInput:
    """The program over finitely many values, or encodings to try instead; or an input that it has no value on."""
    try:
        finite = reachable_values(lowered, space, limits, encodings.is_run)
        check_precision(finite)
    except ReadsNumbersError as found:
        if id(found.node) in encodings.made_of or id(found.node) not in encodings.program:
            raise AssertionError(f"{found.node.name!r} reads numbers already") from None
        return encodings.with_number(found.node, found.averaged)
    except CompileError as error:
        if not encodings.is_run and space.size <= limits.executed_inputs:
            return encodings.with_inputs_run()
        if isinstance(error, PrecisionError) and encodings.can_be_held_apart(error.node):
            return encodings.held_apart(error.node)
        raise _explained(error, space, encodings.is_run) from None
    mean = average_of_classes(finite, space, on, limits)
    if isinstance(mean, UndefinedInput):
        return mean
    if mean is not None:
        if id(mean.expr) in encodings.averages or not isinstance(mean.expr, rasp.Aggregate):
            raise AssertionError(f"the trace finds no value for {mean.name!r} where the interpreter does")
        encodings = encodings.with_average(mean.expr)
    reads = [
        (lowered.node_of[id(one.selector)], lowered.node_of[id(one.sop)]) for one in encodings.averages.values()
    ]
    known = encodings.made_of_also(values_read(finite, reads, space, limits, encodings.is_run))
    # Means that were not known may have hidden what others read: where one is new, all others are found again.
    is_settled = all(encodings.made_of.get(i) == now for i, now in known.made_of.items())
    return finite if is_settled else known


def _explained(error: CompileError, space: InputSpace, is_run: bool) -> CompileError:
    """The error with an input that shows it; or that perhaps none does, where they are too many to be run."""
    kind = PrecisionError if isinstance(error, PrecisionError) else CompileError
    if not is_run and isinstance(error, ValuesError | PrecisionError):
        hint = (
            f"Perhaps no input leads to this, but all {space.size:,} are too many to run: give the intended "
            "inputs as `domain`, or raise executed_inputs of CompileLimits."
        )
        return kind(f"{error} {hint}", error.node)
    example = _example(error, space) if isinstance(error, NotANumberError) else None
    return error if example is None else kind(f"{error} This happens on {example}.", error.node)


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
