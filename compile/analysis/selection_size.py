"""How many keys a selector selects, as far as that follows from positions and lengths."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from rasplens.compile.ir import (
    UNDEFINED,
    BestNode,
    FiniteNode,
    PredicateNode,
    VariableNode,
    predicates_at,
    variable_at,
)


def most_selected(nodes: Sequence[FiniteNode], selector: int, widest: int) -> int:
    """The most keys that a selector picks for a query, of at most `widest` that it sees.

    A predicate on a variable that is another one at every position picks as many keys as values go with a query.
    """
    counts = [
        int(part.table.astype(bool).sum(axis=0).max())
        for part in predicates_at(nodes, selector)
        if _differs_everywhere(variable_at(nodes, part.keys))
    ]
    return min([widest, *counts])


def _differs_everywhere(node: VariableNode) -> bool:
    """Whether a variable is known never to have a value twice in a sequence, and always to have one."""
    if node.by_layout is None:
        return False
    return all(len(set(row[:n].tolist()) - {UNDEFINED}) == n for n, row in enumerate(node.by_layout, start=1))


def widths_by_layout(
    nodes: Sequence[FiniteNode], selector: int, visible: np.ndarray
) -> Int[np.ndarray, "length query"] | None:
    """How many keys are selected, `[length - 1, query]`, where that follows from the length alone."""
    tables = []
    for part in predicates_at(nodes, selector):
        keys, queries = variable_at(nodes, part.keys), variable_at(nodes, part.queries)
        if _always_holds(part, keys, queries):
            continue
        if isinstance(part, BestNode) or keys.by_layout is None or queries.by_layout is None:
            return None
        tables.append((part.table, keys.by_layout, queries.by_layout))
    if not tables:
        return np.cumsum(visible, axis=1).T
    widths = np.zeros(visible.shape, dtype=int)
    for n in range(1, len(visible) + 1):
        selected = visible[:n, :n]
        for table, of_keys, of_queries in tables:
            selected = selected & table[of_keys[n - 1, None, :n], of_queries[n - 1, :n, None]]
        widths[n - 1, :n] = selected.sum(axis=1)
    return widths


def _always_holds(part: PredicateNode, keys: VariableNode, queries: VariableNode) -> bool:
    is_partial = keys.is_partial or queries.is_partial
    return not is_partial and bool(part.table[: len(keys.values), : len(queries.values)].all())
