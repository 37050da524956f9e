import pytest
from rasp_examples import EQUAL

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.passes.rewriting import Rewriting, rewrite
from rasplens.compile.rasp import Aggregate, tokens
from rasplens.compile.rasp.input_space import input_space


@pytest.fixture
def graph():
    return reachable_values(build_graph(Aggregate(EQUAL, tokens)), input_space("ab", 2))


def test_a_graph_whose_nodes_stay_stays(graph):
    same = rewrite(graph, lambda i, node, rewriting: rewriting.add(node))
    assert [node.inputs for node in same.nodes] == [node.inputs for node in graph.nodes]
    assert (same.output, same.names) == (graph.output, graph.names)


def test_what_is_added_before_a_node_shifts_its_readers(graph):
    def change(i, node, rewriting: Rewriting):
        if i == 0:
            rewriting.add(node)
        return rewriting.add(node)

    doubled = rewrite(graph, change)
    assert [node.inputs for node in doubled.nodes] == [(), (), (1, 1), (2, 1)]
    assert doubled.output == 3
