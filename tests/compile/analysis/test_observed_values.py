"""What is listed is what occurs on the inputs, found by the interpreter apart from it."""

import pytest
from rasp_examples import EQUAL, EVERYTHING, PREVIOUS

from rasplens.compile import CompileError, CompileLimits, UndefinedValue, compile_program, run, verify
from rasplens.compile.analysis.reachable_values import NEVER, reachable_values
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import (
    Aggregate,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    Where,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.input_space import InputSpace, input_space

PREV = Aggregate(Select(indices, indices, lambda key, query: key == max(query - 1, 0)), numerical(tokens))
SPACE = input_space([0, 1], 3)

PROGRAMS = {
    "pairs": SequenceMap(lambda x, y: (x, y), Aggregate(PREVIOUS, tokens, default=0), PREV),
    "sums": numerical(LinearSequenceMap(PREV, Map(lambda x: 1 - x, PREV), 2, 3)),
    "choices": Where(PREV == 1, Full("one"), Map(lambda x: x, PREV)),
    "means of one": numerical(PREV),
    "means": numerical(Aggregate(EQUAL, numerical(indices))),
    "means and none": numerical(Aggregate(EQUAL, Map(lambda t: None if t else t, tokens))),
    "widths": SelectorWidth(Select(tokens, PREV, lambda key, query: key > query)),
    "best": Aggregate(SelectBest(tokens, tokens, lambda key, query: key >= query, tokens), tokens),
}


def occurring(program, space: InputSpace) -> set:
    return {value for sequence in space for value in run(program, sequence)}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_values_are_those_that_occur(program):
    finite = reachable_values(build_graph(program), SPACE, is_run=True)
    node = finite.variable(finite.output)
    assert {*node.values, *([None] if node.is_partial else [])} == occurring(program, SPACE)


def test_a_sequence_without_a_value_is_followed_no_further():
    word = Aggregate(EVERYTHING, Map("ab".__getitem__, tokens))
    program = Map(lambda letter: {"a": 0, "b": 1}[letter], word)
    finite = reachable_values(build_graph(program), SPACE, is_run=True)
    assert finite.variable(finite.output).values == (0, 1)
    with pytest.raises(UndefinedValue):
        run(program, [0, 1])


def test_what_is_never_defined_takes_one_value_that_stands_for_none():
    nothing = Aggregate(Select(tokens, tokens, lambda key, query: False), tokens).named("nothing")
    program = Where(tokens == 0, tokens, nothing)
    finite = reachable_values(build_graph(program), SPACE, is_run=True)
    assert finite.variable(finite.names["nothing"]).values == (NEVER,)
    assert finite.variable(finite.names["nothing"]).is_partial
    assert verify(compile_program(program, [0, 1], 3)).ok
    with pytest.raises(CompileError, match="'nothing' is undefined"):
        compile_program(nothing, [0, 1], 3)


def test_a_table_that_is_too_large_is_refused():
    with pytest.raises(CompileError, match=r"'pair'.* 2 and 3 values.*max_bytes"):
        reachable_values(
            build_graph(SequenceMap(lambda x, y: x, tokens, indices).named("pair")),
            SPACE,
            CompileLimits(max_bytes=90),
            is_run=True,
        )


@pytest.mark.parametrize("optimize", [True, False])
def test_a_mean_of_sums_that_are_never_averaged_is_no_reason_to_refuse(optimize):
    """As means of three, 1.222222222222222 and 1.2222222222222223 were too close together."""
    compiled = compile_program(Aggregate(EVERYTHING, PREV + 1), [0, 1], 3, optimize=optimize)
    assert verify(compiled).ok


def test_a_mean_of_one_key_is_that_key_in_spaces_of_any_size():
    compiled = compile_program(numerical(PREV), [0, 1], 30)
    assert compiled.variables[compiled.output].values == (0, 1)
