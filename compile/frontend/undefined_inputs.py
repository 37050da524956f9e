"""Inputs on which a program is undefined, which are found before it is compiled.

An average of different words is undefined, and so is a function where it raises. The inputs are
enumerated where there are few enough, and sampled otherwise.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.analysis.selection_size import most_selected
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.errors import CompileError, UndefinedValue
from rasplens.compile.ir import (
    AggregateNode,
    FiniteGraph,
    LookupNode,
    PredicateNode,
)
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.interpreter import run

Partial = Literal["forbid", "allow"]
"""The ways to treat a partial program, which is undefined on some inputs: refuse it, or compile it."""


@dataclass(frozen=True)
class UndefinedInput:
    """A smallest input on which a program is undefined, as far as the search went.

    Attributes:
        nodes: The ids of the operations without a value, the first in front.
        tokens: The input.
    """

    nodes: tuple[int, ...]
    tokens: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class DefinedOn:
    """The inputs on which a program has to be defined.

    Attributes:
        partial: What is to be done about inputs on which it is undefined.
        within: Token ids, in batches `[batch, pos]` of one length each, on which it has to be defined in any case;
            on others it need not be.
        at: The positions at which it has to be on those; all by default.
    """

    partial: Partial
    within: Sequence[np.ndarray] = ()
    at: Sequence[int] | None = None

    @property
    def is_all(self) -> bool:
        """Whether it has to be defined everywhere."""
        return self.partial == "forbid" and not self.within


def average_of_classes(
    finite: FiniteGraph, space: InputSpace, on: DefinedOn, limits: CompileLimits
) -> AggregateNode | UndefinedInput | None:
    """An aggregate that has a value where only classes seem to be mixed: since they are numbers, their mean.

    Or a smallest input on which the program is undefined, where it has to be defined on all.
    """
    within = _undefined_among(on.within, finite, space, limits)
    for undefined in itertools.chain(within, undefined_inputs(finite, space, limits)):
        nodes = [finite.nodes[i] for i in undefined.nodes]
        for node in nodes:
            if not _is_undefined(node.expr, undefined.tokens, space):
                if not isinstance(node, AggregateNode):
                    raise AssertionError(f"the trace finds no value for {node.name!r} where the interpreter does")
                return node
        if on.is_all:
            return undefined
    return None


def check_defined_within(program: rasp.SOp, space: InputSpace, on: DefinedOn) -> None:
    """Raises where a program has no value on inputs, and at positions, at which it has to have one.

    Raises:
        CompileError: With a shortest such input.
    """
    tables = BatchInterpreter(program, space.vocab, space.visible)
    for ids in on.within:
        _, fails = tables(ids)
        if on.at is not None:
            _, is_known = tables.where_defined(ids)
            fails = np.asarray(~is_known[:, [at for at in on.at if at < ids.shape[1]]].all(axis=1))
        if fails.any():
            raise refusal(program, [space.vocab[token] for token in ids[fails.argmax()]], space, on)


def refusal(program: rasp.SOp, tokens: Sequence[Value], space: InputSpace, on: DefinedOn) -> CompileError:
    """Return the error for an input on which a program has no value."""
    remedy = 'Compile with partial="allow" (or --partial allow) to have the model refuse to answer there.'
    if on.within or space.domain is not None:
        remedy = "The sequences given as domain or defined_on contain this input: change them or the program."
    try:
        run(program, tokens, mask=space.visible)
    except UndefinedValue as error:
        return CompileError(f"{error} {remedy}", program)
    raise AssertionError(f"the plain interpreter finds a value for {program.name!r} on {list(tokens)}")


def _is_undefined(expr: rasp.RASPExpr, tokens: Sequence[Value], space: InputSpace) -> bool:
    """Whether the interpreter finds no value for an expression on an input."""
    try:
        run(expr, tokens, mask=space.visible)
    except UndefinedValue:
        return True
    return False


def undefined_inputs(
    finite: FiniteGraph, space: InputSpace, limits: CompileLimits = DEFAULT_LIMITS
) -> Iterator[UndefinedInput]:
    """Inputs on which some variable is undefined, the short first; a few for every variable."""
    yield from _undefined_among(searched(space, limits), finite, space, limits)


def _undefined_among(
    batches: Iterable[np.ndarray],
    finite: FiniteGraph,
    space: InputSpace,
    limits: CompileLimits,
) -> Iterator[UndefinedInput]:
    if not may_be_undefined(finite):
        return
    left = dict.fromkeys(range(len(finite.nodes)), limits.undefined_examples)
    for ids in batches:
        found = trace(finite, ids, space.visible)
        for row in np.flatnonzero(found.fails()).tolist():
            nodes = tuple(i for i, where in sorted(found.failures.items()) if where[row])
            if left[nodes[0]]:
                left[nodes[0]] -= 1
                yield UndefinedInput(nodes, tuple(space.vocab[token] for token in ids[row].tolist()))


def may_be_undefined(finite: FiniteGraph) -> bool:
    """Whether some operation may have no value on some input."""
    return any(_is_risky(i, finite) for i in range(len(finite.nodes)))


def may_raise_unseen(finite: FiniteGraph, space: InputSpace, limits: CompileLimits = DEFAULT_LIMITS) -> bool:
    """Whether a function may raise on an input that the search for undefined ones did not see."""
    is_searched_in_full = space.size <= limits.enumerated_inputs
    return not is_searched_in_full and any(
        isinstance(node, LookupNode | PredicateNode) and bool(node.raises) for node in finite.nodes
    )


def searched(space: InputSpace, limits: CompileLimits = DEFAULT_LIMITS) -> Iterator[np.ndarray]:
    """The inputs to search, as ids: all where there are few enough, else a fixed sample; the short first."""
    if space.size <= limits.enumerated_inputs:
        return space.all_ids()
    return space.sampled_ids(limits.sampled_inputs, seed=0)


def _is_risky(i: int, finite: FiniteGraph) -> bool:
    """Whether an operation may have no value: it may mix what cannot be averaged, or its function may raise."""
    node = finite.nodes[i]
    if isinstance(node, LookupNode | PredicateNode):
        return bool(node.raises)
    if not isinstance(node, AggregateNode):
        return False
    source = finite.variable(node.inputs[1])
    is_uniform = len(source.values) + source.is_partial == 1 or (node.is_numerical and not source.is_partial)
    return not is_uniform and most_selected(finite.nodes, node.inputs[0], 2) > 1
