"""The compiler: the modules of this package, in the order in which they work."""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from rasplens.compile import ir as ops
from rasplens.compile import rasp
from rasplens.compile.analysis.domains import Finite, FiniteNode
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.backend.assembly import Assembly, Places, assemble
from rasplens.compile.backend.residual_layout import Layout, lay_out
from rasplens.compile.backend.schedule import ATTENTION, schedule
from rasplens.compile.compiled import CompiledModel
from rasplens.compile.errors import CausalWarning, CompileError
from rasplens.compile.frontend.undefined_inputs import defined_program, searched
from rasplens.compile.ir import Graph
from rasplens.compile.passes import ALL_PASSES, FOLD
from rasplens.compile.passes import optimize as run_passes
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.input_space import InputSpace, input_space
from rasplens.compile.rasp.interpreter import expressions
from rasplens.compile.rasp.values import value_key
from rasplens.compile.variable import Variable


def compile_program(
    program: rasp.SOp,
    vocab: Sequence[Value] | set[Value] | frozenset[Value],
    max_len: int,
    *,
    causal: bool = False,
    mask: np.ndarray | None = None,
    bos: bool | str = "auto",
    optimize: bool | Collection[str] = True,
    partial: str = "forbid",
    pad: bool = False,
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
        optimize: Whether to make the model small, or which of `ALL_PASSES` to run. Without, every s-op
            has directions, and heads or neurons, of its own.
        partial: What to do about inputs on which the program has no value: `"forbid"` them, or
            `"allow"` them, and the model refuses to answer there.
        pad: Whether the transformer is to know a padding token, so that sequences of several lengths can
            stand in one batch.

    Raises:
        CompileError: If the program cannot be compiled to something right, or has no value on some input.
        ValueError: If the vocabulary, the length, the mask or an option makes no sense.

    Warns:
        CausalWarning: If a causal program would say something else if it saw the whole sequence.
    """
    inputs = input_space(vocab, max_len, causal, mask)
    passes = _passes(optimize)
    if bos is False:
        passes = [name for name in passes if name != "route"]  # heads that choose may select nothing
    if partial not in ("forbid", "allow"):
        raise ValueError(f'partial must be "forbid" or "allow"; got {partial!r}.')
    if pad and mask is not None:
        raise ValueError("With a mask of its own, a position may see nothing but padding. Compile without `pad`.")
    graph, finite = defined_program(program, inputs, partial)
    arguments = _arguments(program, graph, finite)
    gaps = finite if partial == "allow" else None
    if causal and mask is None and not program.annotations.get("causal"):
        _warn_where_causality_matters(program, finite, inputs)
    finite = run_passes(finite, inputs, passes)
    layout = lay_out(finite, _has_bos(finite, bos), fold=FOLD in passes, has_pad=pad)
    places = schedule(layout)
    assembly = assemble(layout, places, inputs)
    compiled = _with_anatomy(program, inputs, layout, places, assembly)
    return replace(compiled, partial=gaps, arguments=arguments)


def _arguments(program: rasp.SOp, graph: Graph, finite: Finite) -> dict[int, tuple[Value, ...]]:
    """By place among the expressions of the program, what the values of every s-op are."""
    return {
        place: tuple(finite.nodes[graph.node_of[id(expr)]].raw_values)
        for place, expr in enumerate(expressions(program))
        if isinstance(expr, rasp.SOp)
    }


def _passes(chosen: bool | Collection[str]) -> Collection[str]:
    if isinstance(chosen, str):
        chosen = [chosen]
    if isinstance(chosen, bool):
        return ALL_PASSES if chosen else ()
    if unknown := [name for name in chosen if name not in ALL_PASSES]:
        raise ValueError(f"There is no optimiser pass {unknown[0]!r}. There are {', '.join(ALL_PASSES)}.")
    return chosen


def _warn_where_causality_matters(program: rasp.SOp, finite: Finite, inputs: InputSpace) -> None:
    """Shows the smallest input on which seeing the whole sequence changes what the program says."""
    everything = input_space(inputs.vocab, inputs.max_len)
    try:
        _, whole = defined_program(program, everything, "allow")
    except CompileError:
        return  # it has no meaning but the causal one
    values, whole_values = finite.nodes[finite.output].values, whole.nodes[whole.output].values
    for ids in searched(inputs):
        causal, full = trace(finite, ids, inputs.visible), trace(whole, ids, everything.visible)
        said, would_say = causal.codes[finite.output].tolist(), full.codes[whole.output].tolist()
        for row in np.flatnonzero(~causal.fails() & ~full.fails()).tolist():
            got = [(*values, None)[code] for code in said[row]]
            other = [(*whole_values, None)[code] for code in would_say[row]]
            if list(map(value_key, got)) != list(map(value_key, other)):
                tokens = [inputs.vocab[token] for token in ids[row]]
                warnings.warn(
                    f"{program.name!r} depends on what comes later: on {tokens} it says {other}, but {got} where "
                    "positions see only the past. If that is what it is meant to say, mark it as causal(...).",
                    CausalWarning,
                    stacklevel=3,
                )
                return


def _has_bos(finite: Finite, bos: bool | str) -> bool:
    """Whether the model gets a BOS position.

    Raises:
        CompileError: If it needs one and the caller forbids it.
    """
    if bos is not True and bos is not False and bos != "auto":
        raise ValueError(f'bos must be True, False or "auto"; got {bos!r}.')
    needing = next((node for node in finite.nodes if _needs_bos(node, finite)), None)
    if needing is not None and bos is False:
        raise CompileError(
            f"{needing.name!r} needs a beginning-of-sequence position: it counts, or its selector may select "
            'nothing. Compile with bos="auto".',
            needing.expr,
        )
    return needing is not None if bos == "auto" else bool(bos)


def _needs_bos(node: FiniteNode, finite: Finite) -> bool:
    if isinstance(node.op, ops.BosShare):
        return True
    if not isinstance(node.op, ops.Gather):
        return False
    # A position that sees nothing at all stays silent: that alone gives None, but no other default.
    may_be_empty = any(finite.nodes[selector].may_be_empty for selector in node.inputs[::2])
    return may_be_empty or any(fallback is not None for fallback in node.fallbacks)


def _with_anatomy(
    program: rasp.SOp, inputs: InputSpace, layout: Layout, places: Places, assembly: Assembly
) -> CompiledModel:
    finite = layout.finite
    has_mlps = not assembly.transformer.config.attn_only
    variables = {}
    of_program = {expr.name for expr in expressions(program) if isinstance(expr, rasp.SOp)}
    named = set(finite.names.values())
    unnamed = {
        finite.nodes[i].name: i
        for i in layout.slices
        if i not in named and finite.nodes[i].name not in finite.names
    }
    for name, i in (finite.names | unnamed).items():
        if not layout.can_read(i):
            continue
        node, place = finite.nodes[i], places[i]
        if place is None:
            written_at = "blocks.0.hook_resid_pre"
        else:
            layer, kind = place
            written_at = f"blocks.{layer}.hook_resid_{'mid' if kind == ATTENTION and has_mlps else 'post'}"
        assert node.encoding is not None
        columns = layout.reading(i)
        directions = np.setdiff1d(np.flatnonzero(columns.any(axis=1)), [] if layout.bos is None else [layout.bos])
        is_view = i not in layout.slices
        variables[name] = Variable(
            name, node.encoding, node.values, columns, directions, written_at, is_view, name not in of_program
        )
    output = next(name for name, i in finite.names.items() if i == finite.output)
    return CompiledModel(
        program=program,
        inputs=inputs,
        transformer=assembly.transformer,
        has_bos=layout.bos is not None,
        has_pad=layout.pad is not None,
        variables=variables,
        output=program.name if finite.names.get(program.name) == finite.output else output,
        heads={place: _what_is_written(i, layout) for place, i in assembly.heads.items()},
        neurons={place: _what_is_written(i, layout) for place, i in assembly.neurons.items()},
    )


def _what_is_written(i: int, layout: Layout) -> str:
    """The name of what a head or neurons compute: of the one variable that they write, if it is one."""
    written = layout.written[i]
    return layout.finite.nodes[written[0] if len(written) == 1 else i].name
