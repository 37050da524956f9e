from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import Aggregate, Comparison, Select, tokens


def test_selectors_are_held_nowhere():
    graph = build_graph(Aggregate(Select(tokens, tokens, Comparison.EQ), tokens))
    assert [node.is_selector for node in graph.nodes] == [False, True, False]
    assert [node.encoding is None for node in graph.nodes] == [False, True, False]
    assert graph.variables == (0, 2)
