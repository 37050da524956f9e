"""Blocks of neurons on every code of their inputs, the undefined ones included."""

import itertools

import numpy as np
import pytest
from rasp_examples import PREVIOUS, SHIFTED

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.backend.neurons import RAMP, build_neurons
from rasplens.compile.backend.residual_layout import lay_out
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.ir import LinearNode, WhereNode
from rasplens.compile.rasp import (
    Aggregate,
    Encoding,
    LinearSequenceMap,
    Map,
    SequenceMap,
    Where,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.input_space import input_space

NUMBER = numerical(Map(lambda t: [0.0, 0.1, 7.0][t], tokens))
SHIFTED_NUMBER = numerical(Aggregate(PREVIOUS, NUMBER))

BLOCKS = {
    "lookup": Map(lambda t: "abc"[t], tokens),
    "lookup to numbers": NUMBER,
    "lookup with undefined results": Map(lambda t: None if t == 1 else t, tokens),
    "lookup of a partial variable": Map(lambda t: t + 1, SHIFTED),
    "partial lookup to numbers": numerical(Map(lambda t: None if t == 1 else t, tokens)),
    "pairs": SequenceMap(lambda x, y: x * y, tokens, indices),
    "pairs of partial variables": SequenceMap(lambda x, y: x * y, SHIFTED, tokens),
    "pairs to numbers": numerical(SequenceMap(lambda x, y: x - y, tokens, indices)),
    "steps": Map(lambda x: f"{x}", NUMBER),
    "steps to numbers": numerical(Map(lambda x: x * x, NUMBER)),
    "steps of a partial number": Map(lambda x: f"{x}", SHIFTED_NUMBER),
    "partial steps to numbers": numerical(Map(lambda x: None if x == 0.1 else x + 1, SHIFTED_NUMBER)),
    "linear": numerical(LinearSequenceMap(NUMBER, tokens, 2, -3)),
    "linear in partial numbers": numerical(LinearSequenceMap(SHIFTED_NUMBER, NUMBER, 1, -1)),
    "choose": Where(tokens == 1, tokens, indices),
    "choose between partial variables": Where(SHIFTED == 1, SHIFTED, tokens),
    "choose between numbers": numerical(Where(tokens == 1, NUMBER, SHIFTED_NUMBER)),
    "choose numbers from classes": numerical(Where(SHIFTED == 1, tokens, NUMBER)),
    "choose, one branch never": Where(tokens == 9, SHIFTED, tokens),
}


@pytest.fixture(params=BLOCKS)
def block(request):
    graph = build_graph(BLOCKS[request.param])
    finite = reachable_values(graph, input_space([0, 1, 2], 3))
    layout = lay_out(finite, has_bos=True, fold=False)
    return graph, finite, layout, build_neurons(finite.output, layout)


def written(block, values):
    """What the block writes, in its own coordinates, at a position where its inputs have these values."""
    _, finite, layout, neurons = block
    output = finite.output
    residual = layout.encode(0, 0) @ layout.write(0)  # some token stands at every position
    for source, value in zip(finite.nodes[output].inputs, values, strict=True):
        residual[layout.slices[source]] = layout.encode(source, value)
    post = np.maximum(residual @ neurons.W_in, 0)
    return (post @ neurons.W_out)[layout.slices[output]]


def expected(graph, finite, layout, values):
    node, (*_, lowered) = finite.nodes[finite.output], graph.nodes
    if isinstance(node, WhereNode):
        condition, then, otherwise = values
        result = None if condition is None else (then if condition else otherwise)
    elif any(value is None for value in values):
        result = None
    elif isinstance(node, LinearNode):
        result = node.fst_fac * values[0] + node.snd_fac * values[1]
    else:
        result = lowered.op.function(*values)
    if node.encoding is Encoding.NUMERICAL and result is not None:
        return np.array([result, 1.0])[: layout.encode(finite.output, None).size]
    return layout.encode(finite.output, result)


def test_the_block_is_right_on_every_combination_of_values(block):
    graph, finite, layout, _ = block
    inputs = finite.nodes[finite.output].inputs
    choices = [
        (*finite.nodes[i].domain.values, *((None,) if finite.nodes[i].domain.is_partial else ())) for i in inputs
    ]
    if len(set(inputs)) < len(inputs):
        pytest.skip("the same variable twice has no independent values")
    for values in itertools.product(*choices):
        if 0 in inputs and values[inputs.index(0)] is None:
            continue
        np.testing.assert_allclose(written(block, values), expected(graph, finite, layout, values), atol=1e-9)


def test_no_neuron_fires_at_the_bos(block):
    *_, layout, neurons = block
    bos = layout.bos_content.copy()
    bos[layout.bos] = 1
    assert not (np.maximum(bos @ neurons.W_in, 0) @ neurons.W_out).any()


def test_every_neuron_writes_something(block):
    assert block[-1].W_out.any(axis=1).all()


def test_numbers_may_be_off_by_three_eighths_of_a_gap():
    finite = reachable_values(build_graph(Map(lambda x: x > 0.05, NUMBER)), input_space([0, 1, 2], 1))
    layout = lay_out(finite, has_bos=False, fold=False)
    neurons = build_neurons(finite.output, layout)
    number = layout.slices[1].start

    def step(x):
        residual = layout.encode(0, 0) @ layout.write(0)
        residual[number] = x
        return (np.maximum(residual @ neurons.W_in, 0) @ neurons.W_out)[layout.slices[2]]

    room = 0.1 * (1 / 2 - 1 / (2 * RAMP))
    assert RAMP == 4.0
    for error in (-room, -room / 2, 0, room / 2, room):
        np.testing.assert_allclose(step(0.0 + error), [1, 0], atol=1e-9)
        np.testing.assert_allclose(step(0.1 + error), [0, 1], atol=1e-9)
    assert abs(step(0.05)[0] - 0.5) < 1e-9  # and in the middle it is neither


@pytest.mark.parametrize(("middle", "threshold", "far_end"), [(0.1, 0.05, 7.0), (6.9, 6.95, 0.0)])
def test_a_step_runs_towards_the_nearer_end_where_it_grows_least(middle, threshold, far_end):
    number = numerical(Map(lambda t: [0.0, middle, 7.0][t], tokens))
    finite = reachable_values(build_graph(Map(lambda x: x > threshold, number)), input_space([0, 1, 2], 1))
    layout = lay_out(finite, has_bos=False, fold=False)
    neurons = build_neurons(finite.output, layout)
    residual = layout.encode(0, 0) @ layout.write(0)
    residual[layout.slices[1].start] = far_end
    assert (residual @ neurons.W_in <= 1).all()  # of the two neurons of the step none has grown
