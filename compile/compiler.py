"""The compiler: the modules of this package, in the order in which they work."""

from collections.abc import Sequence

import numpy as np

from rasplens.compile import graph as ops
from rasplens.compile import rasp
from rasplens.compile.assemble import Assembly, Places, assemble
from rasplens.compile.compiled import CompiledModel, Variable
from rasplens.compile.errors import CompileError
from rasplens.compile.graph import Node
from rasplens.compile.inputs import InputSpace, input_space
from rasplens.compile.lowering import build_graph
from rasplens.compile.rasp import Value
from rasplens.compile.residual import Layout, lay_out
from rasplens.compile.schedule import ATTENTION, schedule
from rasplens.compile.values import Finite, reachable_values


def compile_program(
    program: rasp.SOp,
    vocab: Sequence[Value] | set[Value] | frozenset[Value],
    max_len: int,
    *,
    causal: bool = False,
    mask: np.ndarray | None = None,
    bos: bool | str = "auto",
) -> CompiledModel:
    """A transformer that computes a RASP program, with its anatomy.

    Args:
        program: The s-op to compute at every position.
        vocab: The tokens; a set is put in order.
        max_len: The longest sequence.
        causal: Whether positions see only themselves and what comes before.
        mask: Boolean `[query, key]` over `max_len` positions: what may be seen at all.
        bos: Whether to put a beginning-of-sequence position before the sequence, hidden from the
            caller. `"auto"` does so where a width is needed or a selector may select nothing.

    Raises:
        CompileError: If the program cannot be compiled to something right.
        ValueError: If the vocabulary, the length or the mask make no sense.
    """
    inputs = input_space(vocab, max_len, causal, mask)
    graph = build_graph(program)
    finite = reachable_values(graph, inputs)
    layout = lay_out(finite, _has_bos(finite, bos))
    places = schedule(graph)
    assembly = assemble(layout, places, inputs)
    return _with_anatomy(program, inputs, layout, places, assembly)


def _has_bos(finite: Finite, bos: bool | str) -> bool:
    """Whether the model gets a BOS position.

    Raises:
        CompileError: If it needs one and the caller forbids it.
    """
    if bos is not True and bos is not False and bos != "auto":
        raise ValueError(f'bos must be True, False or "auto"; got {bos!r}.')
    needing = next((node for i, node in enumerate(finite.graph.nodes) if _needs_bos(i, node, finite)), None)
    if needing is not None and bos is False:
        raise CompileError(
            f"{needing.name!r} needs a beginning-of-sequence position: it counts, or its selector may select "
            'nothing. Compile with bos="auto".',
            needing.expr,
        )
    return needing is not None if bos == "auto" else bool(bos)


def _needs_bos(i: int, node: Node, finite: Finite) -> bool:
    if isinstance(node.op, ops.BosShare):
        return True
    # A position that sees nothing at all stays silent: that alone gives None, but no other default.
    is_gather = isinstance(node.op, ops.Gather)
    return is_gather and (node.inputs[0] in finite.empty or finite.fallbacks.get(i) is not None)


def _with_anatomy(
    program: rasp.SOp, inputs: InputSpace, layout: Layout, places: Places, assembly: Assembly
) -> CompiledModel:
    nodes = layout.finite.graph.nodes
    last = "hook_resid_mid" if not assembly.transformer.config.attn_only else "hook_resid_post"
    variables = {}
    for i in layout.finite.graph.variables:
        node = nodes[i]
        layer, kind = places.get(i, (0, None))
        point = {None: "hook_resid_pre", ATTENTION: last}.get(kind, "hook_resid_post")
        written_at = f"blocks.{layer}.{point}"
        assert node.encoding is not None
        values = layout.finite.domains[i].values
        variables[node.name] = Variable(node.name, node.encoding, values, layout.slices[i], written_at)
    return CompiledModel(
        program=program,
        inputs=inputs,
        transformer=assembly.transformer,
        has_bos=layout.bos is not None,
        variables=variables,
        output=nodes[layout.finite.graph.output].name,
        heads={place: nodes[i].name for place, i in assembly.heads.items()},
        neurons={place: nodes[i].name for place, i in assembly.neurons.items()},
    )
