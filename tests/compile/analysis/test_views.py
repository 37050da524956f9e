import pytest

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.analysis.views import is_view
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import LinearSequenceMap, Map, SequenceMap, indices, numerical, tokens
from rasplens.compile.rasp.input_space import input_space

NUMBER = numerical(tokens)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (Map(abs, tokens), True),
        (Map(abs, NUMBER), False),
        (SequenceMap(max, tokens, indices), False),
        (numerical(LinearSequenceMap(NUMBER, NUMBER, 1, 2)), True),
        (numerical(LinearSequenceMap(numerical(Map(lambda t: t or None, tokens)), NUMBER, 1, 2)), False),
        (tokens, False),
    ],
    ids=["map of a class", "map of a number", "function of two", "linear form", "partial linear form", "embedded"],
)
def test_what_is_linear_is_a_view(program, expected):
    graph = reachable_values(build_graph(program), input_space([0, 1], 2))
    assert is_view(graph, graph.output) is expected
