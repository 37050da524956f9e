"""Choices that attention can make."""

from dataclasses import replace

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile.analysis.domains import Finite, FiniteNode
from rasplens.compile.analysis.views import is_view
from rasplens.compile.passes.rewriting import Rewriting, no_function, rewrite
from rasplens.compile.rasp.input_space import InputSpace


def route(finite: Finite, space: InputSpace) -> Finite:
    """With a choice between two gathers made by their selectors, where the condition is there in time.

    `Where(c, Aggregate(S, x), Aggregate(T, y))` is one variable that two heads write, the first attending
    only where c holds, the second only where it does not: no MLP is needed to choose.
    """
    uses = np.bincount([source for node in finite.nodes for source in node.inputs] + [finite.output, 0])

    def change(i: int, node: FiniteNode, rewriting: Rewriting) -> int:
        if not isinstance(node.op, ops.Choose) or not _can_route(finite, finite.nodes[i], uses):
            return rewriting.add(node)
        condition, *branches = node.inputs
        inputs: list[int] = []
        for branch, wanted in zip(branches, (True, False), strict=True):
            selector, source = rewriting.nodes[branch].inputs
            inputs += [_only_where(condition, wanted, selector, rewriting), source]
        return rewriting.add(replace(node, op=ops.Gather(None), inputs=tuple(inputs), fallbacks=(None,)))

    return rewrite(finite, change)


def _can_route(finite: Finite, node: FiniteNode, uses: np.ndarray) -> bool:
    condition, *branches = (finite.nodes[i] for i in node.inputs)
    gathers = [branch for branch in branches if isinstance(branch.op, ops.Gather) and len(branch.inputs) == 2]
    return (
        len(gathers) == 2
        and all(uses[i] == 1 for i in node.inputs[1:])
        and all(branch.fallbacks in ((), (None,)) for branch in gathers)
        and all(isinstance(finite.nodes[branch.inputs[0]].op, ops.Match | ops.Both) for branch in gathers)
        and all(branch.encoding is node.encoding for branch in gathers)
        and not condition.is_partial
        and is_view(finite, node.inputs[0])
        and not finite.nodes[condition.inputs[0]].inputs
    )


def _only_where(condition: int, wanted: bool, selector: int, rewriting: Rewriting) -> int:
    """The selector, of nothing where the condition is not as wanted."""
    node = rewriting.nodes[selector]
    truth = np.array([*(bool(value) is wanted for value in rewriting.nodes[condition].values), False])
    op = ops.Match(no_function)  # type: ignore[arg-type]
    table = np.zeros((len(truth), len(truth)), dtype=bool)
    table[:-1] = truth  # of the query alone: the key is the condition too, only because every key has one
    name = f"{node.name} (gate)"
    reads = (condition, condition)
    gate = rewriting.add(replace(node, op=op, inputs=reads, name=name, table=table, raises={}, may_be_empty=True))
    parts = node.inputs if isinstance(node.op, ops.Both) else (selector,)
    return rewriting.add(
        replace(node, op=ops.Both(), inputs=(*parts, gate), table=None, raises={}, may_be_empty=True)
    )
