"""The compiler's own quick look at a program, against the interpreter, which shares nothing with it."""

import numpy as np
import pytest
from rasp_examples import EVERYTHING

from rasplens.compile import UndefinedValue, rasp, run
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.analysis.table_evaluation import nearest_codes, ranking, trace
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import Aggregate, Map, Select, SelectorWidth, numerical, tokens
from rasplens.compile.rasp.input_space import input_space


def traced(program, space):
    """The program's values by the trace, None where it has none, for every input."""
    finite = reachable_values(build_graph(program), space)
    output = finite.nodes[finite.output]
    for ids in space.all_ids():
        found = trace(finite, ids, space.visible)
        fails = found.fails()
        for row, codes in enumerate(found.codes[finite.output]):
            sequence = [space.vocab[token] for token in ids[row]]
            yield sequence, None if fails[row] else [(*output.values, None)[code] for code in codes]


def test_it_agrees_with_the_interpreter_on_every_input(case):
    options = {name: value for name, value in case.options.items() if name in ("causal", "mask")}
    space = input_space(case.vocab, case.max_len, **options)
    for sequence, got in traced(case.program, space):
        expected = run(case.program, sequence, mask=space.visible)
        assert got is not None
        assert [type(v) for v in got] == [type(v) for v in expected], sequence
        assert got == pytest.approx(expected) if isinstance(got[0], float) else got == expected


@pytest.mark.parametrize(
    "program",
    [
        Aggregate(EVERYTHING, Map(str, tokens)),
        Map(lambda t: 1 / t, tokens),
        SelectorWidth(Select(tokens, tokens, lambda k, q: k / q > 1)),
        numerical(Aggregate(EVERYTHING, numerical(Map(lambda t: t or None, tokens)))),
    ],
    ids=["mixture", "function", "predicate", "mean of undefined"],
)
def test_it_fails_where_the_interpreter_does(program):
    outcomes = set()
    for sequence, got in traced(program, input_space([0, 1, 2], 3)):
        try:
            run(program, sequence)
            fails = False
        except UndefinedValue:
            fails = True
        assert (got is None) == fails, sequence
        outcomes.add(fails)
    assert outcomes == {True, False}


def test_equal_scores_share_a_rank():
    assert ranking((3, 1, 3, 2)).tolist() == [2, 0, 2, 1]


def test_numbers_get_the_nearest_code():
    space = input_space([0, 1], 3)
    finite = reachable_values(build_graph(rasp.numerical(rasp.Full(7))), space)
    assert nearest_codes(finite.nodes[finite.output], np.array([6.9, 7.0])).tolist() == [0, 0]
    many = reachable_values(build_graph(rasp.numerical(rasp.indices)), space)
    assert nearest_codes(many.nodes[many.output], np.array([-1, 0.4, 0.6, 5])).tolist() == [0, 0, 1, 2]
