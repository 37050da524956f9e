"""Which values meet, if variables without a known dependence may combine freely.

What follows from the length and the position alone is known exactly, and so are large tables where the inputs are
few enough to be run. The rest is a superset of what occurs.
"""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool

from rasplens.compile import ir, rasp
from rasplens.compile.analysis.domains import ValuesError, coder
from rasplens.compile.analysis.empty_selection import Conjunct, may_be_empty
from rasplens.compile.analysis.possible_codes import Possible, occurring_codes, possible_codes
from rasplens.compile.analysis.selection_size import most_selected
from rasplens.compile.ir import (
    UNDEFINED,
    FiniteNode,
    GraphNode,
    LoweredVariable,
    PredicateNode,
    SelectBestNode,
    VariableNode,
    predicates_at,
    variable_at,
)
from rasplens.compile.limits import CompileLimits
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import exact

MANY = 10_000
"""An operation over more pairs of values than this is evaluated on the inputs themselves, if they are few."""


@dataclass(frozen=True, eq=False)
class IndependentValues:
    """The values that may meet in a graph, from its tables alone.

    Attributes:
        space: The inputs.
        limits: How much to enumerate.
        nodes: The graph so far.
    """

    space: InputSpace
    limits: CompileLimits
    nodes: list[FiniteNode]

    def add(self, i: int) -> None:
        """Takes note of a further node: its tables say all."""

    def together(self, node: LoweredVariable) -> Bool[np.ndarray, "..."]:
        """Which codes of a node's inputs may come together at a position, undefined last on every axis."""
        inputs = [variable_at(self.nodes, i) for i in node.inputs]
        check_combinations(node, inputs, self.limits)
        sizes = [len(source.values) + 1 for source in inputs]
        by_layout = known_by_layout(inputs)
        if by_layout is not None:
            met = np.zeros(sizes, dtype=bool)
            met[tuple(codes[np.tri(self.space.max_len, dtype=bool)] for codes in by_layout)] = True
            return met
        met = np.ones(sizes, dtype=bool)
        for axis, source in enumerate(inputs):
            if not source.is_partial:
                met[(slice(None),) * axis + (UNDEFINED,)] = False
        if len(node.inputs) == 2 and node.inputs[0] == node.inputs[1]:
            met &= np.eye(sizes[0], dtype=bool)
        pair, few_inputs = _function_of_two(node), self.space.size <= self.limits.executed_inputs
        if pair is not None and few_inputs and met.sum() > MANY:
            with contextlib.suppress(KeyError):  # a value that is found later, such as an average of classes
                met[:UNDEFINED, :UNDEFINED] = _occurring(pair, inputs, sizes, self.space)[:UNDEFINED, :UNDEFINED]
        return met

    def chosen(self, node: LoweredVariable, truth: Possible) -> tuple[Possible, Possible]:
        """Which codes of its branches a choice may take, undefined last.

        Args:
            node: The choice.
            truth: By code of the condition, whether it holds.
        """
        condition, then, otherwise = node.inputs
        is_defined = np.arange(len(truth)) < len(truth) - 1
        return (
            possible_codes(self.nodes, then, condition, truth),
            possible_codes(self.nodes, otherwise, condition, ~truth & is_defined),
        )

    def key_and_query(self, node: GraphNode) -> Bool[np.ndarray, "key query"]:
        """Which codes of a key and of a query may come together in a sequence, undefined last."""
        keys, queries = node.inputs[:2]
        check_combinations(node, [variable_at(self.nodes, i) for i in (keys, queries)], self.limits)
        return np.outer(occurring_codes(self.nodes, keys), occurring_codes(self.nodes, queries))

    def selected(self, selector: int, source: int) -> Possible:
        """Which codes of a variable a selector may select, undefined last."""
        found = occurring_codes(self.nodes, source)
        for part in predicates_at(self.nodes, selector):
            queries = occurring_codes(self.nodes, part.queries)
            keys = np.asarray(part.table[:, queries].any(axis=1))
            found = found & possible_codes(self.nodes, source, part.keys, keys)
        return found

    def selected_alone(self, selector: int, source: int) -> Possible:
        """Which codes of a variable may be all that a selector selects for a query, undefined last."""
        return self.selected(selector, source)

    def means(self, node: LoweredVariable, numbers: Sequence[Value | None]) -> set[Fraction]:
        """Every mean of as many numbers as a position may see.

        Args:
            node: The aggregate.
            numbers: By code of what it averages, the number; None of what is never selected.

        Raises:
            ValuesError: If there are too many.
        """
        most = most_selected(self.nodes, node.inputs[0], self.widest)
        rationals = {exact(number) for number in numbers if number is not None}
        unit = math.lcm(*(number.denominator for number in rationals))
        steps = np.array(sorted(int(number * unit) for number in rationals), dtype=object)
        means: set[Fraction] = set()
        sums = np.zeros(1, dtype=object)
        for count in range(1, most + 1):
            if len(sums) * len(steps) > self.limits.max_combinations:
                raise ValuesError(
                    f"{node.name!r} averages up to {most} of {len(steps):,} numbers: too many means to list. "
                    "Reduce the vocabulary or max_len, or round the values.",
                    node.expr,
                )
            sums = np.unique(sums[:, None] + steps[None, :])
            means.update(Fraction(int(total), count * unit) for total in sums)
            if len(means) > self.limits.max_values:
                break  # `make_domain` refuses them by name
        return means

    def widths(self, selector: int, may_be_empty: bool) -> Sequence[int]:
        """How many keys a selector may select."""
        return range(0 if may_be_empty else 1, most_selected(self.nodes, selector, self.widest) + 1)

    def may_be_empty(self, selector: int) -> bool:
        """Whether a selector may select nothing where a position sees something."""
        node = self.nodes[selector]
        if isinstance(node, SelectBestNode) and variable_at(self.nodes, node.score).is_partial:
            return True
        conjuncts = [self._conjunct(part) for part in predicates_at(self.nodes, selector)]
        return may_be_empty(conjuncts, self.space.visible)

    def _conjunct(self, predicate: PredicateNode) -> Conjunct:
        """A predicate as the question whether it may be empty sees it."""
        keys, queries = (variable_at(self.nodes, i) for i in predicate.inputs[:2])
        positions = None
        if keys.by_layout is not None and queries.by_layout is not None:
            positions = keys.by_layout, queries.by_layout
        occur = tuple(slice(len(source.values) + source.is_partial) for source in (keys, queries))
        is_same = predicate.keys == predicate.queries
        holds = predicate.table.astype(bool)
        return Conjunct(holds, holds[occur], is_same, positions)

    @property
    def widest(self) -> int:
        """The most keys that a position sees."""
        return int(self.space.visible.sum(axis=1).max())


def check_combinations(node: GraphNode, inputs: Sequence[VariableNode], limits: CompileLimits) -> None:
    """Refuses an operation of too many pairs.

    Raises:
        ValuesError: With how many values its inputs have.
    """
    if math.prod(len(source.values) for source in inputs) > limits.max_combinations:
        sizes = " and ".join(f"{len(source.values):,}" for source in inputs)
        raise ValuesError(
            f"{node.name!r} combines variables of {sizes} values: more than {limits.max_combinations:,} pairs. "
            "Reduce the vocabulary or max_len, round the values, or raise max_combinations of CompileLimits.",
            node.expr,
        )


def known_by_layout(variables: Sequence[VariableNode]) -> list[np.ndarray] | None:
    """The codes of variables by length and position; None if one of them depends on anything else."""
    known = [variable.by_layout for variable in variables if variable.by_layout is not None]
    return known if len(known) == len(variables) else None


def _function_of_two(node: LoweredVariable) -> rasp.SequenceMap | None:
    """The expression of a node that is the very function of two s-ops."""
    if not (isinstance(node.expr, rasp.SequenceMap) and isinstance(node.op, ir.Apply)):
        return None
    return node.expr if node.op.function is node.expr.f and len(node.inputs) == 2 else None


def _occurring(
    expr: rasp.SequenceMap, inputs: Sequence[VariableNode], sizes: Sequence[int], space: InputSpace
) -> np.ndarray:
    """Which pairs of two s-ops occur on the inputs of a small space, where both are defined."""
    pairs = BatchInterpreter(rasp.SequenceMap(lambda x, y: (x, y), expr.fst, expr.snd), space.vocab, space.visible)
    for ids in space.all_ids():
        pairs(ids)
    codes = [coder(source, source.domain) for source in inputs]
    met = np.zeros(sizes, dtype=bool)
    for pair in pairs.values[1:]:
        met[tuple(code(value) for code, value in zip(codes, pair, strict=True))] = True
    return met
