import pytest
from rasp_examples import EQUAL

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.ir import LoweredSelector, LoweredVariable, PredicateNode
from rasplens.compile.rasp import Aggregate, tokens
from rasplens.compile.rasp.input_space import input_space


def test_selectors_are_held_nowhere():
    graph = build_graph(Aggregate(EQUAL, tokens))
    assert [type(node) for node in graph.nodes] == [LoweredVariable, LoweredSelector, LoweredVariable]
    assert graph.variables == (0, 2)


def test_a_node_of_the_other_kind_is_refused_by_name():
    finite = reachable_values(build_graph(Aggregate(EQUAL, tokens)), input_space("ab", 2))
    assert finite.variables == (0, 2)
    assert isinstance(finite.selector(1), PredicateNode)
    with pytest.raises(TypeError, match="'select' is a selector"):
        finite.variable(1)
    with pytest.raises(TypeError, match="'tokens' is a variable"):
        finite.selector(0)
