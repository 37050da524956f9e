"""Values that no input reaches, found by running all inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rasplens.compile.analysis.domains import coder
from rasplens.compile.analysis.empty_selection import some_position_sees_nothing
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.ir import (
    UNDEFINED,
    AggregateNode,
    Domain,
    FiniteGraph,
    FiniteNode,
    LookupNode,
    PredicateNode,
    SelectorNode,
)
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.input_space import InputSpace


def prune_values(graph: FiniteGraph, space: InputSpace, limits: CompileLimits = DEFAULT_LIMITS) -> FiniteGraph:
    """The graph without values that no input reaches, where the inputs can be enumerated.

    A variable is then as wide as it need be, a function of two knows which pairs meet, and a selector
    that never comes out empty needs no BOS.
    """
    if space.size > limits.executed_inputs:
        return graph
    if any(trace(graph, ids, space.visible).fails().any() for ids in space.all_ids()):
        return graph  # where the program is undefined, the model is to notice
    return _restricted(graph, space, _execute(graph, space))


@dataclass(frozen=True, eq=False)
class _Seen:
    """The codes and table entries that occur on all inputs together.

    Attributes:
        codes: By variable, which of its codes occur, undefined last.
        met: By lookup, which places of its table are met.
        is_empty: Which selectors select nothing at a position that sees something.
    """

    codes: dict[int, np.ndarray]
    met: dict[int, np.ndarray]
    is_empty: np.ndarray


def _execute(graph: FiniteGraph, space: InputSpace) -> _Seen:
    """Return the codes and table entries that occur in a graph on all inputs."""
    codes = {i: np.zeros(len(graph.variable(i).values) + 1, dtype=bool) for i in graph.variables}
    met = {
        i: np.zeros(node.table.shape, bool) for i, node in enumerate(graph.nodes) if isinstance(node, LookupNode)
    }
    is_empty = np.zeros(len(graph.nodes), dtype=bool)
    for ids in space.all_ids():
        found = trace(graph, ids, space.visible)
        sees = found.visible.any(axis=1)
        for i, selected in found.selected.items():
            is_empty[i] |= bool((~selected.any(axis=-1) & sees).any())
        for i, of_variable in found.codes.items():
            codes[i][of_variable] = True
        for i, places in met.items():
            places[tuple(found.codes[source] for source in graph.nodes[i].inputs)] = True
    for i in graph.variables:
        if not graph.nodes[i].inputs:  # every token and every position has a row of its embedding
            codes[i][:-1] = True
    return _Seen(codes, met, is_empty)


def _restricted(graph: FiniteGraph, space: InputSpace, seen: _Seen) -> FiniteGraph:
    """The graph over the values that were seen."""
    kept = {i: _kept(codes) for i, codes in seen.codes.items()}
    may_be_silent = some_position_sees_nothing(space.visible)

    def axes(sources: Sequence[int]) -> tuple[np.ndarray, ...]:
        return np.ix_(*(kept[source] for source in sources))

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        sources = graph.nodes[i].inputs
        if isinstance(node, SelectorNode):
            node = replace(node, may_be_empty=bool(seen.is_empty[i]))
            if isinstance(node, PredicateNode):
                node = replace(node, table=node.table[axes(sources[:2])], raises={})
            return rewriting.add(node)
        codes = kept[i][:-1]
        domain = Domain(tuple(node.values[code] for code in codes), bool(seen.codes[i][-1]))
        if isinstance(node, LookupNode):
            new_code = np.full(len(node.values) + 1, UNDEFINED)
            new_code[codes] = np.arange(len(codes))
            at = axes(sources)
            node = replace(node, table=new_code[node.table[at]], met=seen.met[i][at], raises={})
        elif isinstance(node, AggregateNode):
            is_empty = any(rewriting.selector(selector).may_be_empty for selector, _ in node.pairs)
            fallbacks = _reached(node, domain) if is_empty or may_be_silent else ()
            node = replace(node, fallbacks=fallbacks)
        return rewriting.add(replace(node, domain=domain, by_layout=None))

    return rewrite(graph, change)


def _reached(node: AggregateNode, domain: Domain) -> tuple[Value, ...]:
    """The defaults of an aggregate that some input comes to: those that are left among its values."""
    known = coder(node, domain)

    def is_left(fallback: Value) -> bool:
        try:
            known(fallback)
        except KeyError:
            return False
        return True

    return tuple(fallback for fallback in node.fallbacks if fallback is None or is_left(fallback))


def _kept(seen: np.ndarray) -> np.ndarray:
    """The codes that are kept, and the place for undefined; of what is never defined one, for its encoding."""
    codes = np.flatnonzero(seen[:-1])
    return np.append(codes if len(codes) else [0], len(seen) - 1)
