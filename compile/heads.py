"""From a gather or a width to one attention head.

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

from rasplens.compile import graph as ops
from rasplens.compile.equality import value_key
from rasplens.compile.rasp import Encoding
from rasplens.compile.residual import Columns, Layout

LEAK = 1e-11
"""The most attention that all unselected positions together may keep."""


@dataclass(frozen=True, eq=False)
class Head:
    """The weights of one head, in the head's own width."""

    W_Q: Columns
    W_K: Columns
    W_V: Columns
    W_O: Float[np.ndarray, "_ d_model"]


def sharpness(n_ctx: int) -> int:
    """What levels are multiplied by: unselected keys, one level below, keep at most `LEAK` in all.

    With n - 1 keys one level below the one that is selected, they keep (n - 1) e^-s / (1 + (n - 1) e^-s),
    which is below `LEAK` for s ≥ ln(n / LEAK). It is a whole number, so that scores are: in float32 too,
    keys on the same level then get the same share to the last bit, whatever the order of the additions.
    """
    return math.ceil(math.log(n_ctx / LEAK))


def build_head(variable: int, layout: Layout, scale: int) -> Head:
    """The head that computes a `Gather` or a `BosShare`, with attention scores of `scale` per level."""
    node = layout.finite.graph.nodes[variable]
    counts = isinstance(node.op, ops.BosShare)
    queries, keys = _scores(node.inputs[0], layout, counts)
    values = layout.is_bos() if counts else _values(variable, node.inputs[1], layout)
    return Head(queries * scale, keys, values, layout.write(variable))


def _scores(selector: int, layout: Layout, counts: bool) -> tuple[Columns, Columns]:
    """Query and key columns whose products add up to the level of each key."""
    node = layout.finite.graph.nodes[selector]
    if isinstance(node.op, ops.MatchBest):
        pairs, bos_level, ranks = _best_scores(selector, layout)
    else:
        parts = node.inputs if isinstance(node.op, ops.Both) else (selector,)
        pairs = [_predicate(part, layout, 2) for part in parts]
        bos_level = 2 * len(parts) - (0 if counts else 1)
        ranks = np.zeros((layout.d_model, 1))
    everywhere = layout.position()
    if layout.bos is not None:
        everywhere = everywhere + layout.is_bos()
        ranks = ranks + bos_level * layout.is_bos()
    if ranks.any():
        pairs.append((everywhere, ranks))
    queries, keys = zip(*pairs, strict=True)
    return np.concatenate(queries, axis=1), np.concatenate(keys, axis=1)


def _best_scores(selector: int, layout: Layout) -> tuple[list[tuple[Columns, Columns]], int, Columns]:
    """The predicate, the level of the BOS, and what every key adds for its rank.

    With ranks 2, 4, …, 2R for scores in ascending order and 2(R + 1) for the predicate, a key that
    satisfies the predicate and has a score reaches at least 2(R + 1) + 2, and any other at most 2(R + 1):
    the BOS stands in between.
    """
    finite = layout.finite
    score = finite.graph.nodes[selector].inputs[2]
    values = finite.domains[score].values
    ascending = sorted(set(values))
    ranks = np.array([2.0 * (ascending.index(value) + 1) for value in values])
    weight = 2 * (len(ascending) + 1)
    return [_predicate(selector, layout, weight)], weight + 1, layout.onehot(score) @ ranks[:, None]


def _predicate(selector: int, layout: Layout, weight: int) -> tuple[Columns, Columns]:
    """Columns whose product is `weight` where the predicate holds, in as few dimensions as the sides allow."""
    keys, queries = layout.finite.graph.nodes[selector].inputs[:2]
    table = weight * layout.finite.tables[selector].astype(float)
    n_keys, n_queries = table.shape
    if n_keys <= n_queries:
        return layout.onehot(queries) @ table.T, layout.onehot(keys)
    return layout.onehot(queries), layout.onehot(keys) @ table


def _values(variable: int, source: int, layout: Layout) -> Columns:
    """What is read at each position, in the coordinates of the result; the fallback at the BOS."""
    finite = layout.finite
    if finite.graph.nodes[variable].encoding is Encoding.NUMERICAL:
        columns = layout.number(source)
        if finite.domains[variable].is_partial:
            columns = np.concatenate([columns, layout.defined(source)], axis=1)
    else:
        codes = finite.domains[variable].codes()
        columns = np.zeros((layout.d_model, len(codes)))
        for column, value in zip(layout.onehot(source).T, finite.domains[source].values, strict=True):
            columns[:, codes[value_key(value)]] += column
    if layout.bos is not None:
        columns[layout.bos] += layout.encode(variable, finite.fallbacks.get(variable))
    return columns
