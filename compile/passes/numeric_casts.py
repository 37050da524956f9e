"""Numbers that are read as such."""

from dataclasses import replace

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import UNDEFINED, Finite, FiniteNode, coder, finish, make_domain
from rasplens.compile.ir import Node
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp import Encoding
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import as_number


def cast(finite: Finite, space: InputSpace) -> Finite:
    """With what is read as a number read through a number: fewer directions, if nothing else is read of it."""
    casts: dict[int, int] = {}

    def as_numerical(source: int, rewriting: Rewriting) -> int:
        node = rewriting.nodes[source]
        if node.is_numerical:
            return source
        if source not in casts:
            casts[source] = rewriting.add(mapped(node, source, f"{node.name} as numerical", Encoding.NUMERICAL))
        return casts[source]

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        first = {ops.Linear: 0, ops.Gather: 0, ops.Choose: 1}.get(type(node.op))
        if first is None or not node.is_numerical:
            return rewriting.add(node)
        inputs = [
            source if position < first or rewriting.nodes[source].is_selector else as_numerical(source, rewriting)
            for position, source in enumerate(node.inputs)
        ]
        return rewriting.add(replace(node, inputs=tuple(inputs)))

    return rewrite(finite, change)


def mapped(source: FiniteNode, at: int, name: str, encoding: Encoding) -> FiniteNode:
    """The variable itself under another encoding."""
    node = Node(ops.Apply(as_number), (at,), name, encoding, source.expr)
    domain = make_domain(node, source.values, source.is_partial)
    code_of = coder(node, domain)
    table = np.array([*(code_of(as_number(value)) for value in source.values), UNDEFINED])
    return finish(node, domain=domain, table=table, met=np.ones(len(table), dtype=bool))
