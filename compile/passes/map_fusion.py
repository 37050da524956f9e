"""Functions that all follow from one variable."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rasplens.compile.analysis.domains import coder
from rasplens.compile.analysis.table_evaluation import chosen_codes
from rasplens.compile.ir import (
    UNDEFINED,
    FiniteGraph,
    FiniteNode,
    LinearNode,
    LookupNode,
    VariableNode,
    WhereNode,
)
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp.values import as_number, exact

Roots = dict[int, tuple[int, np.ndarray]]
"""By variable: the categorical one that it follows from, and its code for every code of that, undefined last."""

Elementwise = LookupNode | WhereNode | LinearNode


def fuse_maps(graph: FiniteGraph) -> FiniteGraph:
    """The graph with chains of maps, and functions of several maps of one variable, as one map of it."""
    roots: Roots = {}

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        fused = _fused(node, rewriting, roots) if isinstance(node, LookupNode | WhereNode | LinearNode) else None
        new = rewriting.add(node if fused is None else fused)
        result = rewriting.nodes[new]
        if isinstance(result, VariableNode) and not result.is_numerical:
            if isinstance(result, LookupNode) and len(result.inputs) == 1 and result.inputs[0] in roots:
                base, codes = roots[result.inputs[0]]
                roots[new] = base, result.table[codes]
            else:
                roots[new] = new, np.array([*range(len(result.values)), UNDEFINED])
        return new

    return rewrite(graph, change)


def _fused(node: Elementwise, rewriting: Rewriting, roots: Roots) -> LookupNode | None:
    """A node whose inputs all follow from one categorical variable, as a map of that; None if they do not."""
    if any(i not in roots for i in node.inputs):
        return None
    bases = {roots[i][0] for i in node.inputs}
    if len(bases) > 1 or (node.inputs == tuple(bases) and len(node.inputs) == 1):
        return None
    (base,) = bases
    source = rewriting.variable(base)
    codes = _codes_of(node, [rewriting.variable(i) for i in node.inputs], [roots[i][1] for i in node.inputs])
    occurring = codes if source.is_partial else codes[:-1]
    if (occurring == UNDEFINED).all():
        return None
    # The same values under the same codes: what reads the node has tables over them.
    domain = replace(node.domain, is_partial=bool((occurring == UNDEFINED).any()))
    met = np.ones(len(codes), dtype=bool)
    met[-1] = source.is_partial
    return LookupNode((base,), node.name, node.expr, node.encoding, domain, codes, met, kind_of=node.kind_of)


def _codes_of(node: Elementwise, inputs: Sequence[VariableNode], codes: Sequence[np.ndarray]) -> np.ndarray:
    """The node's codes where its inputs have the given ones."""
    if isinstance(node, LookupNode):
        return node.table[tuple(codes)]
    if isinstance(node, WhereNode):
        return chosen_codes(node, inputs, codes)
    return _linear_codes(node, inputs, codes)


def _linear_codes(node: LinearNode, inputs: Sequence[VariableNode], codes: Sequence[np.ndarray]) -> np.ndarray:
    fst_fac, snd_fac = exact(node.fst_fac), exact(node.snd_fac)
    code_of = coder(node, node.domain)
    return np.array([
        UNDEFINED if UNDEFINED in (x, y)
        else code_of(as_number(fst_fac * exact(inputs[0].values[x]) + snd_fac * exact(inputs[1].values[y])))
        for x, y in zip(*codes, strict=True)
    ])  # fmt: skip
