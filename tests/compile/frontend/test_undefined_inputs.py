import pytest

from rasplens.compile import programs
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.frontend import undefined_inputs as domain
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.frontend.undefined_inputs import Gap, find_gaps, searched
from rasplens.compile.rasp import Aggregate, Comparison, Map, Select, tokens
from rasplens.compile.rasp.input_space import input_space

EVERYTHING = Select(tokens, tokens, Comparison.TRUE)


def gap(program, vocab=("a", "b"), max_len=4) -> Gap | None:
    space = input_space(vocab, max_len)
    return next(find_gaps(reachable_values(build_graph(program), space), space), None)


def test_the_first_and_shortest_input_is_given():
    found = gap(Aggregate(EVERYTHING, tokens))
    assert found.tokens == ("a", "b")
    assert found.node == 2
    assert gap(Map(lambda t: {"a": 1}[t], tokens)).tokens == ("b",)


@pytest.mark.parametrize("program", [programs.reverse(), programs.sort(), programs.shuffle_dyck(["ab"])])
def test_programs_with_a_value_everywhere_have_no_gap(program):
    assert gap(program) is None


def test_a_program_without_risk_is_not_run(monkeypatch):
    monkeypatch.setattr(domain, "trace", None)
    assert gap(programs.histogram()) is None
    with pytest.raises(TypeError):
        gap(programs.reverse())


def test_large_spaces_are_sampled_and_small_ones_enumerated():
    assert sum(len(ids) for ids in searched(input_space("ab", 4))) == 30
    assert sum(len(ids) for ids in searched(input_space(range(50), 10))) == domain.SAMPLES
