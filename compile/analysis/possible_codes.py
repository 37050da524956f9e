"""Codes that a variable can have where another one is known to have some of its own, at the same position.

Functions of one or two variables are followed backwards, from what is known to what it was computed from, and
forwards again. So a key that is no "BOS" is a token other than "BOS", and its neighbour is not.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from rasplens.compile.ir import UNDEFINED, FiniteNode, LookupNode, variable_at

Possible = Bool[np.ndarray, " code"]
"""Which codes a variable may have, undefined last."""


def possible_codes(nodes: Sequence[FiniteNode], variable: int, known: int, among: Possible) -> Possible:
    """Which codes a variable may have where a known one has some of its own.

    Args:
        nodes: The graph so far.
        variable: The id of the variable.
        known: The id of the known one.
        among: Its codes there.
    """
    possible = _origins(nodes, known, among)
    return _followed(nodes, variable, possible)


def occurring_codes(nodes: Sequence[FiniteNode], variable: int) -> Possible:
    """Which codes a variable may have at all."""
    node = variable_at(nodes, variable)
    return np.append(np.ones(len(node.values), dtype=bool), node.is_partial)


def _origins(nodes: Sequence[FiniteNode], known: int, among: Possible) -> dict[int, Possible]:
    """By id, which codes a known variable and all that it was computed from may have."""
    found = {known: among & occurring_codes(nodes, known)}
    for i in range(known, -1, -1):
        node = nodes[i]
        if i not in found or not isinstance(node, LookupNode):
            continue
        leads = _places(nodes, node) & found[i][node.table]
        for axis, source in enumerate(node.inputs):
            others = tuple(other for other in range(leads.ndim) if other != axis)
            may = found.get(source, occurring_codes(nodes, source))
            found[source] = may & leads.any(axis=others)
    return found


def _followed(nodes: Sequence[FiniteNode], variable: int, possible: dict[int, Possible]) -> Possible:
    """Which codes a variable may have, given those of what it is computed from."""
    found = dict(possible)
    for i in sorted(_computed_from(nodes, variable)):
        node = nodes[i]
        if not isinstance(node, LookupNode) or not any(source in found for source in node.inputs):
            continue
        at = np.ix_(*(found.get(source, occurring_codes(nodes, source)) for source in node.inputs))
        may = np.zeros(len(node.values) + 1, dtype=bool)
        may[node.table[at][_places(nodes, node)[at]]] = True
        found[i] = may & found.get(i, occurring_codes(nodes, i))
    return found.get(variable, occurring_codes(nodes, variable))


def _places(nodes: Sequence[FiniteNode], node: LookupNode) -> Bool[np.ndarray, "..."]:
    """Which places of a table may be met, those of undefined inputs among them: a function is not asked there."""
    places = np.array(node.met)
    for axis, source in enumerate(node.inputs):
        places[(slice(None),) * axis + (UNDEFINED,)] = variable_at(nodes, source).is_partial
    for axis, source in enumerate(node.inputs):
        may = occurring_codes(nodes, source)
        places &= may.reshape([-1 if axis == other else 1 for other in range(places.ndim)])
    return places


def _computed_from(nodes: Sequence[FiniteNode], variable: int) -> set[int]:
    """The ids of a variable and of what functions compute it from, position by position."""
    found: set[int] = set()
    waiting = [variable]
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += nodes[i].inputs if isinstance(nodes[i], LookupNode) else ()
    return found
