import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.analyses import critical_edges
from rasplens.compare.analyses.critical import accuracy_without
from rasplens.compare.evidence.ablation.edges import Edge


@pytest.fixture(scope="module")
def studied(offset, task):
    return as_studied_model(offset, task, task.held_out[:60])


def test_the_edges_of_a_known_circuit_are_found_and_are_enough(studied, task):
    """The program looks a block back (less one: it predicts the next letter), at every answer."""
    found = critical_edges(studied)
    edges = {(row.query, row.key) for row in found.table[found.table["critical"]].itertuples()}
    assert edges == {(position, position - 2) for position in task.loss_positions}
    assert found.clean == found.without_others == 1.0


def test_without_its_critical_edges_the_model_fails(studied):
    table = critical_edges(studied).table
    gone = [Edge(row.layer, row.query, row.key) for row in table[table["critical"]].itertuples()]
    assert accuracy_without(studied, gone) < 0.5
    assert accuracy_without(studied, []) == 1.0


def test_a_tolerance_that_no_loss_reaches_leaves_nothing(studied):
    found = critical_edges(studied, tolerance=1.0)
    assert not found.table["critical"].any()
    assert found.without_others < 0.5


def test_a_tolerance_that_is_no_accuracy_is_refused(studied):
    with pytest.raises(ValueError, match=r"tolerance.*\[0, 1\]; got 2.0"):
        critical_edges(studied, tolerance=2.0)
