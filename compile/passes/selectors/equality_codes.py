"""Predicates that ask whether key and query are the same, and nothing else."""

import numpy as np

from rasplens.compile.ir import EqualityNode, FiniteGraph, FiniteNode, PredicateNode
from rasplens.compile.passes.rewriting import Rewriting, rewrite

FEWEST_BITS = 2
"""The shortest code: with one bit, a key that equals no query would be only half a level below an equal one."""


def code_equalities(graph: FiniteGraph) -> FiniteGraph:
    """The graph with predicates that pair keys with queries, one to one, as comparisons of binary codes.

    A head then needs no direction for every value, only one for every bit: equal codes have the largest product.
    """

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        return rewriting.add(_coded(node) if type(node) is PredicateNode else node)

    return rewrite(graph, change)


def _coded(node: PredicateNode) -> PredicateNode:
    """The predicate by codes; as it is where it is no pairing, or one of so few values that codes save nothing."""
    table = node.table
    if table[-1].any() or table[:, -1].any() or (table.sum(axis=0) > 1).any() or (table.sum(axis=1) > 1).any():
        return node
    keys, queries = np.nonzero(table)
    n_bits = max(FEWEST_BITS, int(len(keys) - 1).bit_length())
    if n_bits >= len(keys):
        return node
    signs = 1.0 - 2.0 * (np.arange(len(keys))[:, None] >> np.arange(n_bits) & 1)
    key_codes, query_codes = (np.zeros((size, n_bits)) for size in table.shape)
    key_codes[keys], query_codes[queries] = signs, signs
    facts = node.inputs, node.name, node.expr, node.may_be_empty, table, node.raises
    return EqualityNode(*facts, key_codes=key_codes, query_codes=query_codes)
