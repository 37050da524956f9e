"""Values that no input reaches, found by running all inputs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import UNDEFINED, Domain, Finite, FiniteNode
from rasplens.compile.analysis.empty_selection import some_position_sees_nothing
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp.input_space import InputSpace

REACHED_LIMIT = 20_000
"""Input spaces of at most this many sequences are run in full to see which values occur."""


def reached(finite: Finite, space: InputSpace) -> Finite:
    """Without values that no input reaches, where the inputs can be enumerated.

    A variable is then as wide as it need be, a function of two knows which pairs meet, and a selector
    that never comes out empty needs no BOS.
    """
    if space.size > REACHED_LIMIT:
        return finite
    if any(trace(finite, ids, space.visible).fails().any() for ids in space.all_ids()):
        return finite  # where the program has no value, the model is to notice
    seen = [np.zeros(0 if node.is_selector else len(node.values) + 1, dtype=bool) for node in finite.nodes]
    met = {i: np.zeros_like(node.table, dtype=bool) for i, node in enumerate(finite.nodes) if node.met is not None}
    may_be_empty = np.zeros(len(finite.nodes), dtype=bool)
    for ids in space.all_ids():
        found = trace(finite, ids, space.visible)
        sees = found.visible.any(axis=1)
        for i, node in enumerate(finite.nodes):
            if node.is_selector:
                may_be_empty[i] |= bool((~found.selected[i].any(axis=-1) & sees).any())
                continue
            seen[i][found.codes[i]] = True
            if i in met:
                met[i][tuple(found.codes[source] for source in node.inputs)] = True
    return _restricted(finite, space, seen, met, may_be_empty)


def _restricted(
    finite: Finite,
    space: InputSpace,
    seen: Sequence[np.ndarray],
    met: dict[int, np.ndarray],
    may_be_empty: np.ndarray,
) -> Finite:
    """The graph over the values that were seen."""
    kept = [np.append(np.flatnonzero(mask[:-1]), len(mask) - 1) if len(mask) else mask for mask in seen]

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        old = finite.nodes[i]
        axes = np.ix_(*(kept[source] for source in old.inputs)) if node.table is not None else ()
        if isinstance(node.op, ops.Match | ops.MatchBest):
            assert node.table is not None
            axes = np.ix_(*(kept[source] for source in old.inputs[:2]))
            return rewriting.add(
                replace(node, table=node.table[axes], raises={}, may_be_empty=bool(may_be_empty[i]))
            )
        if node.is_selector:
            return rewriting.add(replace(node, may_be_empty=bool(may_be_empty[i])))
        if len(kept[i]) == 1:  # never defined, but still there: keep one value for its encoding
            kept[i] = np.array([0, len(seen[i]) - 1])
        values = tuple(node.values[code] for code in kept[i][:-1])
        domain = Domain(values, bool(seen[i][-1]))
        fallbacks = node.fallbacks
        if isinstance(node.op, ops.Gather):
            selectors = [rewriting.nodes[selector] for selector in node.inputs[::2]]
            is_silent = any(s.may_be_empty for s in selectors) or some_position_sees_nothing(space.visible)
            fallbacks = fallbacks if is_silent else ()
        if node.table is None:
            return rewriting.add(replace(node, domain=domain, fallbacks=fallbacks, by_layout=None))
        new_code = np.full(len(old.values) + 1, UNDEFINED)
        new_code[kept[i][:-1]] = np.arange(len(values))
        return rewriting.add(
            replace(
                node, domain=domain, table=new_code[node.table[axes]], met=met[i][axes], raises={}, by_layout=None
            )
        )

    return rewrite(finite, change)
