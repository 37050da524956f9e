"""The compiler: the modules of this package, in the order in which they work."""

import warnings
from collections.abc import Collection, Sequence
from typing import Literal, get_args

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.backend.assembly import Assembly, assemble
from rasplens.compile.backend.residual_layout import Layout, lay_out
from rasplens.compile.backend.schedule import ATTENTION, Places, schedule
from rasplens.compile.compiled import CompiledModel
from rasplens.compile.errors import CausalWarning, CompileError
from rasplens.compile.frontend.undefined_inputs import Partial, defined_program, searched
from rasplens.compile.ir import AggregateNode, BosAttentionNode, FiniteGraph, FiniteNode, Graph
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.passes.pipeline import ALL_PASSES, IF_CONVERSION, VIEWS
from rasplens.compile.passes.pipeline import optimize as run_passes
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.input_space import InputSpace, input_space
from rasplens.compile.rasp.interpreter import expressions
from rasplens.compile.rasp.values import value_key
from rasplens.compile.variable import Variable

Bos = bool | Literal["auto"]
"""Whether to put a beginning-of-sequence position before the sequence."""


def compile_program(
    program: rasp.SOp,
    vocab: Sequence[Value] | set[Value] | frozenset[Value],
    max_len: int,
    *,
    causal: bool = False,
    mask: np.ndarray | None = None,
    bos: Bos = "auto",
    optimize: bool | Collection[str] = True,
    partial: Partial = "forbid",
    pad: bool = False,
    limits: CompileLimits = DEFAULT_LIMITS,
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
        partial: What to do about inputs on which the program is undefined: `"forbid"` them, or `"allow"`
            them, and the model refuses to answer there.
        pad: Whether the transformer is to know a padding token, so that sequences of several lengths can
            stand in one batch.
        limits: How much to enumerate before a program is refused or its inputs are sampled.

    Raises:
        CompileError: If the program cannot be compiled to something right, or is undefined on some input.
        ValueError: If the vocabulary, the length, the mask or an option makes no sense.

    Warns:
        CausalWarning: If a causal program would say something else if it saw the whole sequence.
    """
    inputs = input_space(vocab, max_len, causal, mask)
    passes = _passes(optimize)
    if bos is False:
        passes = [name for name in passes if name != IF_CONVERSION]  # heads that choose may select nothing
    if partial not in get_args(Partial):
        raise ValueError(f'partial must be "forbid" or "allow"; got {partial!r}.')
    if pad and mask is not None:
        raise ValueError("With a mask of its own, a position may see nothing but padding. Compile without `pad`.")
    lowered, whole = defined_program(program, inputs, partial, limits)
    if causal and mask is None and not program.annotations.get("causal"):
        _warn_where_causality_matters(program, whole, inputs, limits)
    graph = run_passes(whole, inputs, passes, limits)
    layout = lay_out(graph, _has_bos(graph, bos), fold=VIEWS in passes, has_pad=pad)
    places = schedule(layout)
    assembly = assemble(layout, places, inputs)
    return CompiledModel(
        program=program,
        inputs=inputs,
        transformer=assembly.transformer,
        has_bos=layout.bos is not None,
        has_pad=layout.pad is not None,
        variables=_variables(program, layout, places, assembly),
        output=_output(program, graph),
        heads={place: _what_is_written(i, layout) for place, i in assembly.heads.items()},
        neurons={place: _what_is_written(i, layout) for place, i in assembly.neurons.items()},
        partial=whole if partial == "allow" else None,
        arguments=_arguments(program, lowered, whole),
    )


def _arguments(program: rasp.SOp, lowered: Graph, whole: FiniteGraph) -> dict[int, tuple[Value, ...]]:
    """By place among the expressions of the program, what the values of every s-op are."""
    return {
        place: tuple(whole.variable(lowered.node_of[id(expr)]).raw_values)
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


def _warn_where_causality_matters(
    program: rasp.SOp, graph: FiniteGraph, inputs: InputSpace, limits: CompileLimits
) -> None:
    """Shows the smallest input on which seeing the whole sequence changes what the program says."""
    everything = input_space(inputs.vocab, inputs.max_len)
    try:
        _, whole = defined_program(program, everything, "allow", limits)
    except CompileError:
        return  # it has no meaning but the causal one
    values, whole_values = graph.variable(graph.output).values, whole.variable(whole.output).values
    for ids in searched(inputs, limits):
        causal, full = trace(graph, ids, inputs.visible), trace(whole, ids, everything.visible)
        said, would_say = causal.codes[graph.output].tolist(), full.codes[whole.output].tolist()
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


def _has_bos(graph: FiniteGraph, bos: Bos) -> bool:
    """Whether the model gets a BOS position.

    Raises:
        CompileError: If it needs one and the caller forbids it.
    """
    if bos is not True and bos is not False and bos != "auto":
        raise ValueError(f'bos must be True, False or "auto"; got {bos!r}.')
    needing = next((node for node in graph.nodes if _needs_bos(node, graph)), None)
    if needing is not None and bos is False:
        raise CompileError(
            f"{needing.name!r} needs a beginning-of-sequence position: it counts, or its selector may select "
            'nothing. Compile with bos="auto".',
            needing.expr,
        )
    return needing is not None if bos == "auto" else bool(bos)


def _needs_bos(node: FiniteNode, graph: FiniteGraph) -> bool:
    if isinstance(node, BosAttentionNode):
        return True
    if not isinstance(node, AggregateNode):
        return False
    # A position that sees nothing at all stays silent: that alone gives None, but no other default.
    may_be_empty = any(graph.selector(selector).may_be_empty for selector, _ in node.pairs)
    return may_be_empty or any(fallback is not None for fallback in node.fallbacks)


def _variables(program: rasp.SOp, layout: Layout, places: Places, assembly: Assembly) -> dict[str, Variable]:
    """What the residual stream holds, by name: the s-ops of the program, then what the compiler adds."""
    graph, found = layout.graph, {}
    of_program = {expr.name for expr in expressions(program) if isinstance(expr, rasp.SOp)}
    for name, i in _named(layout).items():
        if not layout.can_read(i):
            continue
        node, columns = graph.variable(i), layout.reading(i)
        directions = np.setdiff1d(np.flatnonzero(columns.any(axis=1)), [] if layout.bos is None else [layout.bos])
        found[name] = Variable(
            name,
            node.encoding,
            node.values,
            columns,
            directions,
            written_at=_hook_point(places[i], has_mlps=not assembly.transformer.config.attn_only),
            is_view=i not in layout.slices,
            is_auxiliary=name not in of_program,
        )
    return found


def _named(layout: Layout) -> dict[str, int]:
    """The variables by name: those with names of the graph, then written ones that have lost theirs."""
    names = layout.graph.names
    named = set(names.values())
    unnamed = {layout.graph.nodes[i].name: i for i in layout.slices if i not in named}
    return names | {name: i for name, i in unnamed.items() if name not in names}


def _hook_point(place: tuple[int, int] | None, has_mlps: bool) -> str:
    """The hook point of the residual stream from which on it holds what is computed at a place."""
    if place is None:
        return "blocks.0.hook_resid_pre"
    layer, kind = place
    return f"blocks.{layer}.hook_resid_{'mid' if kind == ATTENTION and has_mlps else 'post'}"


def _output(program: rasp.SOp, graph: FiniteGraph) -> str:
    """The name of the result: the program's, if that is what it still names."""
    if graph.names.get(program.name) == graph.output:
        return program.name
    return next(name for name, i in graph.names.items() if i == graph.output)


def _what_is_written(i: int, layout: Layout) -> str:
    """The name of what a head or neurons compute: of the one variable that they write, if it is one."""
    written = layout.written[i]
    return layout.graph.nodes[written[0] if len(written) == 1 else i].name
