"""Functions that all follow from one variable."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import UNDEFINED, Finite, FiniteNode, coder
from rasplens.compile.analysis.table_evaluation import recode
from rasplens.compile.passes.rewriting import Rewriting, no_function, rewrite
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import as_number, exact


def fuse(finite: Finite, space: InputSpace) -> Finite:
    """With chains of maps, and functions of several maps of one variable, as one map of that variable."""
    roots: dict[int, tuple[int, np.ndarray]] = {}

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        fused = _fused(node, rewriting, roots)
        new = rewriting.add(node if fused is None else fused)
        result = rewriting.nodes[new]
        if not result.is_selector and not result.is_numerical:
            if isinstance(result.op, ops.Apply) and len(result.inputs) == 1 and result.inputs[0] in roots:
                base, codes = roots[result.inputs[0]]
                assert result.table is not None
                roots[new] = base, result.table[codes]
            else:
                roots[new] = new, np.array([*range(len(result.values)), UNDEFINED])
        return new

    return rewrite(finite, change)


def _fused(node: FiniteNode, rewriting: Rewriting, roots: dict[int, tuple[int, np.ndarray]]) -> FiniteNode | None:
    """A node whose inputs all follow from one categorical variable, as a map of that; None if they do not."""
    if not isinstance(node.op, ops.Apply | ops.Choose | ops.Linear) or any(i not in roots for i in node.inputs):
        return None
    bases = {roots[i][0] for i in node.inputs}
    if len(bases) > 1 or (node.inputs == tuple(bases) and len(node.inputs) == 1):
        return None
    (base,) = bases
    source = rewriting.nodes[base]
    codes = _codes_of(node, [rewriting.nodes[i] for i in node.inputs], [roots[i][1] for i in node.inputs])
    occurring = codes if source.is_partial else codes[:-1]
    if (occurring == UNDEFINED).all():
        return None
    # The same values under the same codes: what reads the node has tables over them.
    domain = replace(node.domain, is_partial=bool((occurring == UNDEFINED).any()))
    op = ops.Apply(no_function, takes_none=bool(source.is_partial and codes[-1] != UNDEFINED))
    met = np.ones(len(codes), dtype=bool)
    met[-1] = source.is_partial
    return replace(node, op=op, inputs=(base,), domain=domain, table=codes, met=met, raises={}, by_layout=None)


def _codes_of(node: FiniteNode, inputs: Sequence[FiniteNode], codes: Sequence[np.ndarray]) -> np.ndarray:
    """The node's codes where its inputs have the given ones."""
    if isinstance(node.op, ops.Apply):
        assert node.table is not None
        return node.table[tuple(codes)]
    if isinstance(node.op, ops.Choose):
        truth = np.array([*(bool(value) for value in inputs[0].values), False])[codes[0]]
        first, second = (recode(source, node)[at] for source, at in zip(inputs[1:], codes[1:], strict=True))
        return np.where(codes[0] == UNDEFINED, UNDEFINED, np.where(truth, first, second))
    return _linear_codes(node, inputs, codes)


def _linear_codes(node: FiniteNode, inputs: Sequence[FiniteNode], codes: Sequence[np.ndarray]) -> np.ndarray:
    assert isinstance(node.op, ops.Linear)
    fst_fac, snd_fac = exact(node.op.fst_fac), exact(node.op.snd_fac)
    code_of = coder(node, node.domain)
    return np.array([
        UNDEFINED if UNDEFINED in (x, y)
        else code_of(as_number(fst_fac * exact(inputs[0].values[x]) + snd_fac * exact(inputs[1].values[y])))
        for x, y in zip(*codes, strict=True)
    ])  # fmt: skip
