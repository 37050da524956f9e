"""Does a program have a value on every input? What RASP leaves undefined is found before it is compiled.

An average of different words has no value, and neither has a function where it raises. The inputs are
enumerated where there are few enough, and sampled otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile import rasp
from rasplens.compile.analysis.domains import Finite, FiniteNode
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.errors import CompileError, UndefinedValue
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.ir import Graph
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.interpreter import expressions, run

ENUMERATED = 100_000
"""Input spaces of at most this many sequences are searched in full."""

EXAMPLES = 20
"""How many of the inputs on which a variable has no value are looked at."""

SAMPLES = 2_000
"""How many sequences of a larger one are searched."""


@dataclass(frozen=True)
class Gap:
    """A smallest input on which a program has no value, as far as the search went.

    Attributes:
        node: The id of the first operation without one.
        tokens: The input.
    """

    node: int
    tokens: tuple[Value, ...]


def defined_program(program: rasp.SOp, space: InputSpace, partial: str) -> tuple[Graph, Finite]:
    """The program over finitely many values, with a value on every input unless that is not asked for.

    An aggregate of classes that are numbers may turn out to average them: then it is compiled as a mean.

    Args:
        program: The s-op to compute.
        space: The inputs.
        partial: `"forbid"` or `"allow"` inputs without a value.

    Raises:
        CompileError: If some input has no value, with a smallest example.
    """
    _check_constants(program, space)
    averaged: set[int] = set()
    while True:
        graph = build_graph(program, averaged)
        finite = reachable_values(graph, space)
        mean = _average_of_classes(program, finite, space, partial)
        if mean is None:
            return graph, finite
        if id(mean.expr) in averaged:
            raise AssertionError(f"the trace finds no value for {mean.name!r} where the interpreter does")
        averaged.add(id(mean.expr))


def _average_of_classes(program: rasp.SOp, finite: Finite, space: InputSpace, partial: str) -> FiniteNode | None:
    """An aggregate that has a value where only classes seem to be mixed: since they are numbers, their mean."""
    for gap in find_gaps(finite, space):
        node = finite.nodes[gap.node]
        try:
            run(program, gap.tokens, mask=space.visible)
        except UndefinedValue as error:
            if partial == "allow":
                continue
            raise CompileError(
                f'{error} Compile with partial="allow" to have the model refuse to answer there.', node.expr
            ) from None
        values = finite.nodes[node.inputs[1]].values
        if any(isinstance(value, bool) or (isinstance(value, float) and value.is_integer()) for value in values):
            raise CompileError(
                f"{node.name!r} averages values of different types on {list(gap.tokens)}. Make it numerical(...).",
                node.expr,
            )
        return node
    return None


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


def find_gaps(finite: Finite, space: InputSpace) -> Iterator[Gap]:
    """Inputs on which some variable has no value, the short first; a few for every variable."""
    if not any(_is_risky(i, finite) for i in range(len(finite.nodes))):
        return
    left = dict.fromkeys(range(len(finite.nodes)), EXAMPLES)
    for ids in searched(space):
        found = trace(finite, ids, space.visible)
        for row in np.flatnonzero(found.fails()).tolist():
            node = next(i for i, where in sorted(found.failures.items()) if where[row])
            if left[node]:
                left[node] -= 1
                yield Gap(node, tuple(space.vocab[token] for token in ids[row].tolist()))


def searched(space: InputSpace) -> Iterator[np.ndarray]:
    """The inputs to search, as ids: all where there are few enough, else a fixed sample; the short first."""
    return space.all_ids() if space.size <= ENUMERATED else space.sampled_ids(SAMPLES, seed=0)


def _is_risky(i: int, finite: Finite) -> bool:
    """Whether an operation may have no value: it may mix what cannot be averaged, or its function may raise."""
    node = finite.nodes[i]
    if node.raises:
        return True
    if not isinstance(node.op, ops.Gather):
        return False
    source = finite.nodes[node.inputs[1]]
    return source.is_partial if node.is_numerical else len(source.values) + source.is_partial > 1
