import pytest
from rasp_examples import EVERYTHING

from rasplens.compile import CompileLimits, programs
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.frontend import undefined_inputs as module
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.frontend.undefined_inputs import UndefinedInput, searched, undefined_inputs
from rasplens.compile.rasp import Aggregate, Map, tokens
from rasplens.compile.rasp.input_space import input_space


def first(program, vocab=("a", "b"), max_len=4) -> UndefinedInput | None:
    space = input_space(vocab, max_len)
    return next(undefined_inputs(reachable_values(build_graph(program), space), space), None)


def test_the_first_and_shortest_input_is_given():
    found = first(Aggregate(EVERYTHING, tokens))
    assert found.tokens == ("a", "b")
    assert found.nodes == (2,)
    assert first(Map(lambda t: {"a": 1}[t], tokens)).tokens == ("b",)


@pytest.mark.parametrize("program", [programs.reverse(), programs.sort(), programs.shuffle_dyck(["ab"])])
def test_programs_with_a_value_everywhere_have_no_such_input(program):
    assert first(program) is None


def test_a_program_without_risk_is_not_run(monkeypatch):
    monkeypatch.setattr(module, "trace", None)
    assert first(programs.histogram()) is None
    assert first(programs.reverse()) is None  # each query selects one position, whatever is there
    with pytest.raises(TypeError):
        first(programs.sort())


def test_large_spaces_are_sampled_and_small_ones_enumerated():
    assert sum(len(ids) for ids in searched(input_space("ab", 4))) == 30
    assert sum(len(ids) for ids in searched(input_space(range(50), 10))) == CompileLimits().sampled_inputs
