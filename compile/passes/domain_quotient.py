"""Predicates that read more than they tell apart."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import UNDEFINED, Domain, Finite, FiniteNode, finish
from rasplens.compile.ir import Node
from rasplens.compile.passes.rewriting import Rewriting, no_function, rewrite
from rasplens.compile.rasp import Encoding
from rasplens.compile.rasp.input_space import InputSpace


def everything(finite: Finite, space: InputSpace) -> Finite:
    """Without predicates that always hold: a conjunction of none selects all that is seen, and reads nothing."""

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if isinstance(node.op, ops.Match) and _occurring(node, rewriting.nodes).all():
            return rewriting.add(replace(node, op=ops.Both(), inputs=(), table=None, raises={}))
        if isinstance(node.op, ops.Both):
            kept = tuple(part for part in node.inputs if not isinstance(rewriting.nodes[part].op, ops.Both))
            return rewriting.add(replace(node, inputs=kept)) if len(kept) != 1 else kept[0]
        return rewriting.add(node)

    return rewrite(finite, change)


def _occurring(node: FiniteNode, nodes: Sequence[FiniteNode]) -> np.ndarray:
    """A predicate's table without the places for undefined where that does not occur."""
    assert node.table is not None
    return node.table[tuple(slice(len(nodes[i].values) + nodes[i].is_partial) for i in node.inputs[:2])]


def coarse(finite: Finite, space: InputSpace) -> Finite:
    """With keys and queries told apart only as far as the predicate tells them apart.

    A selector of vowels then reads whether a key is one, and not which letter it is; and keys that are
    never selected are as good as undefined.
    """

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if not isinstance(node.op, ops.Match | ops.MatchBest):
            return rewriting.add(node)
        assert node.table is not None
        table, inputs = node.table, list(node.inputs)
        for axis in (0, 1):
            table = table.swapaxes(0, axis)
            merged = _merged(node, inputs[axis], table, rewriting)
            if merged is not None:
                inputs[axis], table = merged
            table = table.swapaxes(0, axis)
        return rewriting.add(replace(node, inputs=tuple(inputs), table=table, raises={}))

    return rewrite(finite, change)


def _merged(node: FiniteNode, at: int, table: np.ndarray, rewriting: Rewriting) -> tuple[int, np.ndarray] | None:
    """A variable that is read along the first axis of a table, by kinds of equal rows; None if all differ.

    The kind of an undefined value, or if those do not occur of rows that are nowhere true, is undefined.
    """
    source = rewriting.nodes[at]
    if source.is_partial and table[-1].any():
        return None
    kinds, first, kind = np.unique(table[:-1], axis=0, return_index=True, return_inverse=True)
    codes = np.full(len(source.values) + 1, UNDEFINED)
    order = np.argsort(first)
    shown = [k for k in order.tolist() if kinds[k].any()]
    if not shown or len(shown) == len(source.values):
        return None
    for new, k in enumerate(shown):
        codes[:-1][kind.ravel() == k] = new
    view = Node(ops.Apply(no_function), (at,), f"{source.name} (kind)", Encoding.CATEGORICAL, node.expr)
    met = np.append(np.ones(len(source.values), dtype=bool), source.is_partial)
    domain = Domain(tuple(range(len(shown))), bool((codes[met] == UNDEFINED).any()))
    new = rewriting.add(finish(view, domain=domain, table=codes, met=met))
    return new, np.concatenate([kinds[shown], np.zeros_like(table[-1:])])
