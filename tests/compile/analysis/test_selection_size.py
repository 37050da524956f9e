import numpy as np
import pytest
from rasp_examples import BACK, EQUAL, EVERYTHING, PREVIOUS

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.analysis.selection_size import most_selected, widths_by_layout
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import Aggregate, Select, indices, tokens
from rasplens.compile.rasp.input_space import input_space

NEAR = Select(indices, indices, lambda key, query: abs(key - query) < 2)


def graph(selector):
    finite = reachable_values(build_graph(Aggregate(selector, tokens)), input_space("ab", 4))
    return finite.nodes, finite.nodes[finite.output].inputs[0]


@pytest.mark.parametrize(
    ("selector", "most"), [(PREVIOUS, 1), (NEAR, 3), (EQUAL, 4), (EVERYTHING, 4), (EQUAL & PREVIOUS, 1)]
)
def test_positions_bound_what_a_selector_picks(selector, most):
    nodes, at = graph(selector)
    assert most_selected(nodes, at, widest=4) == most
    assert most_selected(nodes, at, widest=1) == 1


def test_widths_follow_from_lengths_where_tokens_are_not_asked():
    visible = np.ones((4, 4), dtype=bool)
    nodes, at = graph(BACK)
    np.testing.assert_array_equal(np.diagonal(widths_by_layout(nodes, at, visible)), [0, 1, 2, 3])
    nodes, at = graph(EVERYTHING)
    np.testing.assert_array_equal(widths_by_layout(nodes, at, visible)[:, 0], [1, 2, 3, 4])
    assert widths_by_layout(*graph(EQUAL), visible) is None
