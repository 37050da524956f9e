"""Where seeing the past only changes what a program says."""

import warnings
from dataclasses import replace

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.errors import CausalWarning, CompileError
from rasplens.compile.frontend.defined_program import defined_program
from rasplens.compile.frontend.undefined_inputs import DefinedOn, searched
from rasplens.compile.ir import FiniteGraph
from rasplens.compile.limits import CompileLimits
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import value_key


def warn_where_causality_matters(
    program: rasp.SOp, graph: FiniteGraph, inputs: InputSpace, limits: CompileLimits
) -> None:
    """Warns with the smallest input on which seeing the whole sequence changes what a program says."""
    everything = replace(inputs, visible=np.ones_like(inputs.visible))
    try:
        whole = defined_program(program, everything, DefinedOn("allow"), limits).whole
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
                    f"{program.name!r} depends on later positions: on {tokens} it gives {other}, but {got} where "
                    "positions see only the past. If that is intended, mark it with causal(...).",
                    CausalWarning,
                    stacklevel=3,
                )
                return
