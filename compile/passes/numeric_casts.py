"""Numbers that are read as such."""

from dataclasses import replace

import numpy as np

from rasplens.compile.analysis.domains import coder, make_domain
from rasplens.compile.ir import (
    UNDEFINED,
    AggregateNode,
    Domain,
    FiniteGraph,
    FiniteNode,
    LinearNode,
    LookupNode,
    SelectorNode,
    VariableNode,
    WhereNode,
)
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp import Encoding
from rasplens.compile.rasp.values import as_number


def insert_numeric_casts(graph: FiniteGraph) -> FiniteGraph:
    """The graph with what is read as a number read through a number.

    That takes fewer directions, if nothing else is read of it.
    """
    casts: dict[int, int] = {}

    def cast(source: int, rewriting: Rewriting) -> int:
        node = rewriting.nodes[source]
        if isinstance(node, SelectorNode) or node.is_numerical:
            return source
        if source not in casts:
            casts[source] = rewriting.add(as_numerical(node, source))
        return casts[source]

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if not isinstance(node, LinearNode | AggregateNode | WhereNode) or not node.is_numerical:
            return rewriting.add(node)
        first = 1 if isinstance(node, WhereNode) else 0  # a condition is no number
        inputs = (*node.inputs[:first], *(cast(source, rewriting) for source in node.inputs[first:]))
        return rewriting.add(replace(node, inputs=inputs))

    return rewrite(graph, change)


def as_numerical(source: VariableNode, at: int) -> LookupNode:
    """The variable at a place, as a number."""
    name = f"{source.name} as numerical"
    unknown = Domain((), is_partial=source.is_partial)
    node = VariableNode((at,), name, source.expr, Encoding.NUMERICAL, unknown)
    domain = make_domain(node, source.values, source.is_partial)
    code_of = coder(node, domain)
    table = np.array([*(code_of(as_number(value)) for value in source.values), UNDEFINED])
    met = np.ones(len(table), dtype=bool)
    return LookupNode((at,), name, source.expr, Encoding.NUMERICAL, domain, table, met)
