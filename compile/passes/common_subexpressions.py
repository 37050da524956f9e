"""Equal operations on equal inputs."""

from typing import Any

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import Finite, FiniteNode
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import exact, value_key


def merge(finite: Finite, space: InputSpace) -> Finite:
    """With equal operations on equal inputs as one, however often the program spells them out."""
    known: dict[tuple, int] = {}

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        key = _identity(node)
        if key not in known:
            known[key] = rewriting.add(node)
        return known[key]

    return rewrite(finite, change)


def _identity(node: FiniteNode) -> tuple:
    """What makes two nodes one."""
    what: tuple[Any, ...] = (type(node.op),)
    if isinstance(node.op, ops.Linear):
        what = (ops.Linear, exact(node.op.fst_fac), exact(node.op.snd_fac))
    table = None if node.table is None else (node.table.shape, node.table.tobytes())
    values = None if node.domain is None else tuple(map(value_key, node.values))
    fallbacks = tuple(map(value_key, node.fallbacks))
    inputs = tuple(sorted(node.inputs)) if isinstance(node.op, ops.Both) else node.inputs
    return (*what, inputs, node.encoding, values, table, fallbacks)
