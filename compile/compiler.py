"""The compiler: the modules of this package, in the order in which they work."""

import operator
import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.backend.assembly import assemble
from rasplens.compile.backend.part_names import function_arguments, held_variables, output_name, written_name
from rasplens.compile.backend.residual_layout import lay_out
from rasplens.compile.backend.schedule import schedule
from rasplens.compile.backend.size import check_length, check_size
from rasplens.compile.compiled import CompiledModel
from rasplens.compile.errors import CompileError, PrecisionWarning
from rasplens.compile.frontend.causality import warn_where_causality_matters
from rasplens.compile.frontend.defined_program import defined_program
from rasplens.compile.frontend.undefined_inputs import DefinedOn, Partial, may_be_undefined, may_raise_unseen
from rasplens.compile.ir import AggregateNode, BosAttentionNode, FiniteGraph, FiniteNode, Graph
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.passes.pipeline import ALL_PASSES, IF_CONVERSION, VIEWS
from rasplens.compile.passes.pipeline import optimize as run_passes
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.input_space import InputSpace, batches, input_space
from rasplens.compile.rasp.interpreter import expressions
from rasplens.errors import RaspLensError, expect

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
    domain: Iterable[Sequence[Value]] | None = None,
    defined_on: Iterable[Sequence[Value]] = (),
    defined_at: Sequence[int] | None = None,
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
        domain: The sequences that the model is for: on others it refuses to answer, and what only they reach is
            left out. By default all.
        defined_on: Sequences on which the program has to be defined; elsewhere it need not be, and the model
            refuses to answer there.
        defined_at: The positions at which it has to be defined on those; all by default.
        pad: Whether the transformer is to know a padding token, so that sequences of several lengths can
            stand in one batch.
        limits: How much to enumerate before a program is refused or its inputs are sampled.

    Raises:
        CompileError: If the program cannot be compiled to something right, or is undefined on some input; a
            PrecisionError if it adds up or averages numbers that float32 cannot hold apart.
        RaspLensError: If the vocabulary, the length, the mask or an option makes no sense.

    Warns:
        CausalWarning: If a causal program would say something else if it saw the whole sequence.
        PrecisionWarning: If numbers have one direction a value, because float32 cannot hold them apart.
    """
    if isinstance(program, rasp.Selector):
        raise CompileError(f"A program is an s-op; got {program!r}. Aggregate over a selector first.", program)
    expect(program, rasp.SOp, "compile_program takes an s-op first: compile_program(program, vocab, max_len)")
    expect(limits, CompileLimits, "limits takes CompileLimits(...)")
    max_len = _whole_number(max_len)
    check_length(max_len, limits)
    inputs = input_space(vocab, max_len, causal, mask)
    inputs = inputs if domain is None else inputs.within(domain)
    passes = _passes(optimize)
    if bos is False:
        passes = [name for name in passes if name != IF_CONVERSION]  # heads that choose may select nothing
    if partial not in get_args(Partial):
        raise RaspLensError(f'partial must be "forbid" or "allow"; got {partial!r}.')
    if pad and mask is not None:
        raise RaspLensError("With a mask, a position may see nothing but padding: give `mask` or `pad`, not both.")
    on = DefinedOn(partial, _as_ids(defined_on, inputs), _positions(defined_at, max_len))
    if on.at is not None and not on.within:
        raise RaspLensError("defined_at selects positions of the sequences in defined_on: give both.")
    lowered, whole, graph = defined_program(
        program, inputs, on, limits, lambda found: run_passes(found, inputs, passes, limits)
    )
    if causal and mask is None and not program.annotations.get("causal"):
        warn_where_causality_matters(program, whole, inputs, limits)
    _warn_of_numbers_held_apart(expressions(program), lowered)
    layout = lay_out(graph, _has_bos(graph, bos), fold=VIEWS in passes, has_pad=pad)
    places = schedule(layout)
    check_size(layout, places, inputs, limits)
    assembly = assemble(layout, places, inputs)
    return CompiledModel(
        program=program,
        inputs=inputs,
        transformer=assembly.transformer,
        has_bos=layout.bos is not None,
        has_pad=layout.pad is not None,
        variables=held_variables(program, layout, places, assembly),
        output=output_name(program, graph),
        heads={place: written_name(i, layout) for place, i in assembly.heads.items()},
        neurons={place: written_name(i, layout) for place, i in assembly.neurons.items()},
        partial=whole if _has_to_notice(whole, inputs, on, limits) else None,
        arguments=function_arguments(program, lowered, whole),
    )


def _warn_of_numbers_held_apart(of_program: Sequence[rasp.RASPExpr], lowered: Graph) -> None:
    names = [
        repr(expr.name)
        for expr in of_program
        if isinstance(expr, rasp.SOp) and expr.encoding is Encoding.NUMERICAL
        if lowered.variable(lowered.node_of[id(expr)]).encoding is Encoding.CATEGORICAL
    ]
    if names:
        warnings.warn(
            f"float32 cannot tell the values of {', '.join(names)} apart, so each value gets its own direction "
            "instead of one number for all. Rescale, shift or round them for a smaller model.",
            PrecisionWarning,
            stacklevel=3,
        )


def _has_to_notice(whole: FiniteGraph, inputs: InputSpace, on: DefinedOn, limits: CompileLimits) -> bool:
    """Whether the model has to look out for inputs on which its program is undefined."""
    return may_raise_unseen(whole, inputs, limits) or (not on.is_all and may_be_undefined(whole))


def _as_ids(sequences: Iterable[Sequence[Value]], inputs: InputSpace) -> list[np.ndarray]:
    """Sequences as ids, in batches of one length each, the short first.

    Raises:
        RaspLensError: If one does not fit the model.
    """
    return [np.array(batch) for batch in batches(sorted((inputs.ids(tuple(one)) for one in sequences), key=len))]


def _positions(given: Sequence[int] | None, max_len: int) -> list[int] | None:
    """Positions of sequences.

    Raises:
        RaspLensError: If there is none, or one is no position.
    """
    if given is None:
        return None
    positions = list(given)
    if not positions or any(isinstance(at, bool) or at not in range(max_len) for at in positions):
        raise RaspLensError(f"defined_at must be one or more positions from 0 to {max_len - 1}; got {given!r}.")
    return positions


def _whole_number(max_len: Any) -> int:
    try:
        return operator.index(max_len)
    except TypeError:
        raise RaspLensError(f"max_len must be a whole number of positions; got {max_len!r}.") from None


def _passes(chosen: bool | Collection[str]) -> Collection[str]:
    if isinstance(chosen, str):
        chosen = [chosen]
    if isinstance(chosen, bool):
        return ALL_PASSES if chosen else ()
    if not isinstance(chosen, Collection):
        raise RaspLensError(f"optimize must be True, False or names of passes; got {chosen!r}.")
    if unknown := [name for name in chosen if name not in ALL_PASSES]:
        raise RaspLensError(f"There is no optimiser pass {unknown[0]!r}. There are {', '.join(ALL_PASSES)}.")
    return chosen


def _has_bos(graph: FiniteGraph, bos: Bos) -> bool:
    """Whether the model gets a BOS position.

    Raises:
        CompileError: If it needs one and the caller forbids it.
    """
    if bos is not True and bos is not False and bos != "auto":
        raise RaspLensError(f'bos must be True, False or "auto"; got {bos!r}.')
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
