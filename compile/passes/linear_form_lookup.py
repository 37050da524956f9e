"""Functions of two numbers that depend on a linear form of them alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import UNDEFINED, Domain, Finite, FiniteNode, finish
from rasplens.compile.ir import Node
from rasplens.compile.passes.numeric_casts import mapped
from rasplens.compile.passes.rewriting import Rewriting, no_function, rewrite
from rasplens.compile.rasp import Encoding
from rasplens.compile.rasp.input_space import InputSpace

FACTORS = (1, -1, 2, -2, 3, -3)
"""Of the second argument of a function, tried for a linear form that the function depends on alone."""


def linear(finite: Finite, space: InputSpace) -> Finite:
    """With functions of two numbers that depend on a linear form alone as lookups in that form.

    `length - indices` takes neurons for every value of the difference, not for every pair.
    """

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        found = _linear_form(node, [rewriting.nodes[source] for source in node.inputs])
        if found is None:
            return rewriting.add(node)
        factor, totals, codes = found
        terms = []
        for source in node.inputs:
            term = rewriting.nodes[source]
            number = mapped(term, source, f"{term.name} as numerical", Encoding.NUMERICAL)
            terms.append(rewriting.add(number))
        form_node = Node(
            ops.Linear(1, factor), tuple(terms), f"{node.name} (linear form)", Encoding.NUMERICAL, node.expr
        )
        form = rewriting.add(finish(form_node, domain=Domain(tuple(totals), is_partial=False)))
        table = np.append(codes, UNDEFINED)
        return rewriting.add(
            replace(
                node, op=ops.Apply(no_function), inputs=(form,), table=table, met=table >= UNDEFINED, raises={}
            )
        )

    return rewrite(finite, change)


def _linear_form(node: FiniteNode, inputs: Sequence[FiniteNode]) -> tuple[int, list, np.ndarray] | None:
    """A factor of the second input, the totals in order and the node's code for each; None if none helps."""
    if not isinstance(node.op, ops.Apply) or len(inputs) != 2 or any(source.is_partial for source in inputs):
        return None
    values = [value for source in inputs for value in source.values]
    if not all(isinstance(value, bool | int) for value in values):
        return None
    assert node.table is not None
    assert node.met is not None
    x, y = (np.array([int(value) for value in source.values]) for source in inputs)
    met, table = node.met[:-1, :-1], node.table[:-1, :-1]
    best = None
    counts = np.bincount(table[met] + 1)
    pairs = min(int(counts[1:].sum()), int(counts.sum() - counts.max()) + min(len(x), len(y)))
    for factor in FACTORS:
        total = (x[:, None] + factor * y[None, :])[met]
        totals, first, at = np.unique(total, return_index=True, return_inverse=True)
        codes = table[met][first]
        if not (codes[at] == table[met]).all():
            continue
        neurons = 2 * int((codes[1:] != codes[:-1]).sum()) + 1
        if best is None or neurons < best[0]:
            best = neurons, factor, totals.tolist(), codes
    return best[1:] if best is not None and best[0] < pairs else None
