import pytest

from rasplens.compare import as_subject
from rasplens.compare.analyses import critical_edges
from rasplens.compare.analyses.critical import accuracy_without
from rasplens.compare.evidence.ablation.edges import Edge


@pytest.fixture(scope="module")
def subject(offset, task):
    return as_subject(offset, task, task.held_out[:60])


def test_the_edges_of_a_known_circuit_are_found_and_are_enough(subject, task):
    """The program looks a block back (less one: it predicts the next letter), at every answer."""
    found = critical_edges(subject)
    edges = {(row.query, row.key) for row in found.table[found.table["critical"]].itertuples()}
    assert edges == {(position, position - 2) for position in task.loss_positions}
    assert found.clean == found.without_others == 1.0


def test_without_its_critical_edges_the_model_fails(subject):
    table = critical_edges(subject).table
    gone = [Edge(row.layer, row.query, row.key) for row in table[table["critical"]].itertuples()]
    assert accuracy_without(subject, gone) < 0.5
    assert accuracy_without(subject, []) == 1.0


def test_a_tolerance_that_no_loss_reaches_leaves_nothing(subject):
    found = critical_edges(subject, tolerance=1.0)
    assert not found.table["critical"].any()
    assert found.without_others < 0.5


def test_a_tolerance_that_is_no_accuracy_is_refused(subject):
    with pytest.raises(ValueError, match=r"in \[0, 1\]; got 2.0"):
        critical_edges(subject, tolerance=2.0)
