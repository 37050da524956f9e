"""Functions of two numbers that depend on a linear form of them alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rasplens.compile.analysis.rounding import is_held_apart
from rasplens.compile.ir import (
    UNDEFINED,
    Domain,
    FiniteGraph,
    FiniteNode,
    LinearNode,
    LookupNode,
    VariableNode,
)
from rasplens.compile.passes.numeric_casts import as_numerical
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.values import is_exact

FACTORS = (1, -1, 2, -2, 3, -3)
"""Factors of the second argument, tried for a linear form on which alone a function depends."""


def look_up_linear_forms(graph: FiniteGraph) -> FiniteGraph:
    """The graph with functions of two numbers that depend on a linear form alone as lookups in that form.

    `length - indices` takes neurons for every value of the difference, not for every pair.
    """

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if not isinstance(node, LookupNode) or len(node.inputs) != 2:
            return rewriting.add(node)
        found = _linear_form(node, [rewriting.variable(source) for source in node.inputs])
        if found is None:
            return rewriting.add(node)
        factor, totals, codes = found
        terms = [rewriting.add(as_numerical(rewriting.variable(source), source)) for source in node.inputs]
        domain = Domain(tuple(totals), is_partial=False)
        name = f"{node.name} (linear form)"
        form = rewriting.add(LinearNode(tuple(terms), name, node.expr, Encoding.NUMERICAL, domain, 1, factor))
        table = np.append(codes, UNDEFINED)
        met = np.ones(len(table), dtype=bool)
        return rewriting.add(replace(node, inputs=(form,), table=table, met=met, raises={}))

    return rewrite(graph, change)


def _linear_form(node: LookupNode, inputs: Sequence[VariableNode]) -> tuple[int, list[Value], np.ndarray] | None:
    """A factor of the second input, the totals in order and the node's code for each; None if none helps."""
    if any(source.is_partial for source in inputs):
        return None
    values = [value for source in inputs for value in source.values]
    if not all(isinstance(value, bool | int) and is_exact(value) for value in values):
        return None
    x, y = (np.array([int(value) for value in source.values]) for source in inputs)
    met, table = node.met[:-1, :-1], node.table[:-1, :-1]
    best = None
    counts = np.bincount(table[met] + 1)
    pairs = min(int(counts[1:].sum()), int(counts.sum() - counts.max()) + min(len(x), len(y)))
    for factor in FACTORS:
        if not is_held_apart(1, float(abs(x).max() + abs(factor) * abs(y).max())):
            continue
        total = (x[:, None] + factor * y[None, :])[met]
        totals, first, at = np.unique(total, return_index=True, return_inverse=True)
        codes = table[met][first]
        if not (codes[at] == table[met]).all():
            continue
        neurons = 2 * int((codes[1:] != codes[:-1]).sum()) + 1
        if best is None or neurons < best[0]:
            best = neurons, factor, totals.tolist(), codes
    return best[1:] if best is not None and best[0] < pairs else None
