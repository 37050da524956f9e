"""From an aggregate or a selector width to attention heads.

The score of a key for a query is an integer, its *level*: a predicate that holds gives 2, so that the
selected keys reach `2 · number of predicates` and every other key is at least 2 below. Where nothing may
be selected, the beginning-of-sequence position stands 1 below the selected level; to count, it stands at
that level itself. Levels times `sharpness` are the attention scores, so that what is not selected keeps
a negligible share. Source: Lindner et al. 2023, appendix D, with levels instead of an offset matrix.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rasplens.compile.analysis.rounding import LEAK
from rasplens.compile.analysis.table_evaluation import ranking, recode
from rasplens.compile.backend.residual_layout import Columns, Layout, sides_read
from rasplens.compile.ir import (
    AggregateNode,
    AttentionNode,
    BestMatchNode,
    EqualityNode,
    PredicateNode,
    SelectBestNode,
)


@dataclass(frozen=True, eq=False)
class Head:
    """The weights of one head, in the head's own width."""

    W_Q: Columns
    W_K: Columns
    W_V: Columns
    W_O: Float[np.ndarray, "_ d_model"]


def sharpness(n_ctx: int) -> int:
    """The attention score per level, at which all unselected keys together keep at most `LEAK`.

    With n - 1 keys one level below the one that is selected, they keep (n - 1) e^-s / (1 + (n - 1) e^-s),
    which is below `LEAK` for s ≥ ln(n / LEAK). It is a whole number, so that scores are: in float32 too,
    keys on the same level then get the same share to the last bit, whatever the order of the additions.
    """
    return math.ceil(math.log(n_ctx / LEAK))


def build_heads(variable: int, layout: Layout, scale: int) -> list[Head]:
    """The heads that compute an `AttentionNode`, with attention scores of `scale` per level."""
    node = layout.graph.variable(variable)
    if not isinstance(node, AggregateNode):  # the attention that the BOS itself gets
        queries, keys = _scores(node.inputs[0], layout, counts=True)
        return [Head(queries * scale, keys, layout.is_bos(), layout.write(variable))]
    heads = []
    for selector, source in node.pairs:
        queries, keys = _scores(selector, layout, counts=False)
        heads.append(Head(queries * scale, keys, _values(node, variable, source, layout), layout.write(variable)))
    return heads


def _scores(selector: int, layout: Layout, counts: bool) -> tuple[Columns, Columns]:
    """Query and key columns whose products add up to the level of each key."""
    node = layout.graph.selector(selector)
    if isinstance(node, SelectBestNode):
        pairs, bos_level, ranks = _best_scores(node, layout)
        highest = 2 * bos_level
    else:
        parts = layout.graph.predicates(selector)
        pairs = [_predicate(part, layout, 2) for part in parts]
        bos_level = 2 * len(parts) - (0 if counts else 1)
        ranks = np.zeros((layout.d_model, 1))
        if layout.bos is not None or layout.pad is not None:  # what keys have in common makes no other difference
            ranks = ranks - sum(_excess(part, layout) for part in parts if isinstance(part, EqualityNode))
        highest = 2 * sum(_n_levels(part) for part in parts)
    if layout.pad is not None:  # below every key of the sequence, whatever the position that it stands at
        ranks = ranks - (highest + 2) * layout.is_pad()
    if layout.bos is not None:
        ranks = ranks + bos_level * layout.is_bos()
    if ranks.any() or not pairs:
        pairs.append((layout.position(), ranks))
    queries, keys = zip(*pairs, strict=True)
    return _narrowed(np.concatenate(queries, axis=1), np.concatenate(keys, axis=1))


def _best_scores(node: SelectBestNode, layout: Layout) -> tuple[list[tuple[Columns, Columns]], int, Columns]:
    """The predicate, the level of the BOS, and what every key adds for its rank.

    With ranks 2, 4, …, 2R for scores in ascending order and 2(R + 1) for the predicate, a key that
    satisfies the predicate and has a score reaches at least 2(R + 1) + 2, and any other at most 2(R + 1):
    the BOS stands in between.
    """
    ranks = 2.0 * (ranking(layout.graph.variable(node.score).values) + 1)
    weight = int(ranks.max()) + 2
    return [_predicate(node, layout, weight)], weight + 1, layout.onehot(node.score) @ ranks[:, None]


def _n_levels(node: PredicateNode) -> int:
    """How far up the keys of a predicate may stand: on one level, or on one a score."""
    return max(1, int(node.table.max())) if isinstance(node, BestMatchNode) else 1


def _excess(node: EqualityNode, layout: Layout) -> Columns:
    """By how much keys with the code of a query lie above the level of 2: all bits agree."""
    has_code = node.key_codes.any(axis=1, keepdims=True)
    return _read_side(node.keys, (node.key_codes.shape[1] - 2) * has_code.astype(float), layout)


def _predicate(node: PredicateNode, layout: Layout, weight: int) -> tuple[Columns, Columns]:
    """Columns whose product is `weight` where the predicate holds; the number of bits where it compares codes.

    Of keys that are scored for each query, it is `weight` times the place of the score. A side that makes no
    difference is read as the mere presence of a position.
    """
    keys, queries = node.keys, node.queries
    if isinstance(node, EqualityNode):
        return _read_side(queries, node.query_codes, layout), _read_side(keys, node.key_codes, layout)
    reads_key, reads_query = sides_read(node, layout.graph)
    table = weight * node.table.astype(float)
    if not reads_query:
        return layout.position(), _read_side(keys, table[:, :1], layout)
    if not reads_key:
        return _read_side(queries, table[:1].T, layout), layout.position()
    if table[-1].any():
        return _read_side(queries, table.T, layout), layout.onehot_or_none(keys)
    return _read_side(queries, table[:-1].T, layout), layout.onehot(keys)


def _read_side(variable: int, rows: np.ndarray, layout: Layout) -> Columns:
    """Columns that read a row for every value of a variable, the last where it is undefined."""
    if rows[-1].any():
        return layout.onehot_or_none(variable) @ rows
    return layout.onehot(variable) @ rows[:-1]


def _narrowed(queries: Columns, keys: Columns) -> tuple[Columns, Columns]:
    """Query and key columns of the same products, but fewer: one per kind of query or of key direction.

    Directions of the residual stream with the same row act alike, and those with a row of zeros not at
    all; with an indicator of each kind on one side, the other side can carry all the rest.
    """
    kinds, kind_of = _kinds(queries)
    other_kinds, other_kind_of = _kinds(keys)
    narrowest = min(queries.shape[1], len(kinds), len(other_kinds))
    if queries.shape[1] == narrowest:
        return queries, keys
    if len(kinds) == narrowest:
        return kind_of, keys @ kinds.T
    return queries @ other_kinds.T, other_kind_of


def _kinds(columns: Columns) -> tuple[np.ndarray, Columns]:
    """The different rows other than zero, and which row each direction has: 0 or 1 `[d_model, kind]`."""
    used = np.flatnonzero(columns.any(axis=1))
    rows, first, kind = np.unique(columns[used], axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    indicator = np.zeros((len(columns), len(rows)))
    indicator[used, np.argsort(order)[kind.ravel()]] = 1
    return rows[order], indicator


def _values(node: AttentionNode, variable: int, source: int, layout: Layout) -> Columns:
    """The value columns: what is read, in the coordinates of the result, and the fallback at the BOS."""
    read = layout.graph.variable(source)
    if node.is_numerical:
        columns = layout.number(source)
        if node.is_partial:
            columns = np.concatenate([columns, layout.defined(source)], axis=1)
    else:
        columns = layout.onehot(source) @ layout.encodings(variable)[recode(read, node)[:-1]]
    if layout.bos is not None:
        for fallback in node.fallbacks:
            columns[layout.bos] += layout.encode(variable, fallback)
    return columns
