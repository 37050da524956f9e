"""Predicates that read more than they tell apart."""

from dataclasses import replace

import numpy as np

from rasplens.compile.ir import UNDEFINED, Domain, FiniteGraph, FiniteNode, LookupNode, PredicateNode
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp import Encoding


def quotient_domains(graph: FiniteGraph) -> FiniteGraph:
    """The graph with keys and queries told apart only as far as their predicate tells them apart.

    A selector of vowels then reads whether a key is one, and not which letter it is; and keys that are
    never selected are as good as undefined.
    """

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if not isinstance(node, PredicateNode):
            return rewriting.add(node)
        table, inputs = node.table, list(node.inputs)
        for axis in (0, 1):
            table = table.swapaxes(0, axis)
            merged = _merged(node, inputs[axis], table, rewriting)
            if merged is not None:
                inputs[axis], table = merged
            table = table.swapaxes(0, axis)
        return rewriting.add(replace(node, inputs=tuple(inputs), table=table, raises={}))

    return rewrite(graph, change)


def _merged(
    node: PredicateNode, at: int, table: np.ndarray, rewriting: Rewriting
) -> tuple[int, np.ndarray] | None:
    """A variable that is read along the first axis of a table, by kinds of equal rows; None if all differ.

    The kind of an undefined value, or if those do not occur of rows that are nowhere true, is undefined.
    """
    source = rewriting.variable(at)
    if source.is_partial and table[-1].any():
        return None
    kinds, first, which = np.unique(table[:-1], axis=0, return_index=True, return_inverse=True)
    codes = np.full(len(source.values) + 1, UNDEFINED)
    order = np.argsort(first)
    shown = [k for k in order.tolist() if kinds[k].any()]
    if not shown or len(shown) == len(source.values):
        return None
    for new, k in enumerate(shown):
        codes[:-1][which.ravel() == k] = new
    met = np.append(np.ones(len(source.values), dtype=bool), source.is_partial)
    domain = Domain(tuple(range(len(shown))), bool((codes[met] == UNDEFINED).any()))
    name = f"{source.name} (kind)"
    kind = LookupNode(
        (at,), name, node.expr, Encoding.CATEGORICAL, domain, codes, met, kind_of=source.kind_of or source.name
    )
    view = rewriting.add(kind)
    return view, np.concatenate([kinds[shown], np.zeros_like(table[-1:])])
