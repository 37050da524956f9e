"""Which edges a program reads on an input."""

import numpy as np
import pytest

from rasplens.compare.claims.edges.program_edges import between_positions, gathering, program_edges
from rasplens.compile import run
from rasplens.compile.rasp import Aggregate, Select, SelectorWidth, SequenceMap, indices, tokens
from rasplens.tasks import task_from_program


def test_edges_are_the_selectors_rows(task):
    """By hand: the letter before, and the one after the last that was the same."""
    program, ids = task.programs["induction"], task.held_out[:20]
    found = program_edges(program, task, ids)
    assert set(found.gathered) == {("previous",), ("induction",)}
    assert not found.counted.any()
    assert found.defined.all()
    before = np.eye(task.n_ctx, k=-1, dtype=bool)
    np.testing.assert_array_equal(found.gathered[("previous",)], np.broadcast_to(before, (20, *before.shape)))
    for edges, sequence in zip(found.gathered[("induction",)], task.sequences(ids), strict=True):
        for query, row in enumerate(edges):
            matches = [key for key in range(1, query + 1) if sequence[key - 1] == sequence[query]]
            assert np.flatnonzero(row).tolist() == matches[-1:]
    np.testing.assert_array_equal(found.carrying, found.gathered[("previous",)] | found.gathered[("induction",)])


def test_aggregates_that_share_a_selector_are_one_route():
    first = Select(indices, indices, lambda key, query: key == 0)
    one = Aggregate(first, tokens).named("one")
    two = Aggregate(first, SequenceMap(lambda t, i: i, tokens, indices)).named("two")
    program = SequenceMap(lambda a, b: (a, b), one, two)
    assert list(gathering(program).values()) == [("one", "two")]


def test_what_a_width_counts_carries_nothing():
    same = Select(tokens, tokens, lambda key, query: key == query)
    program = SelectorWidth(same).named("count")
    task = task_from_program(program, "ab", 4)
    found = program_edges(program, task, task.held_out[:5])
    assert found.gathered == {}
    assert not found.carrying.any()
    for edges, sequence in zip(found.counted, task.sequences(task.held_out[:5]), strict=True):
        np.testing.assert_array_equal(edges, run(same, sequence, mask=task.visible))


def test_what_the_program_cannot_say_has_no_edges(task):
    """A function that raises on an input."""

    def only_without_a(letter, place):
        if letter == "A":
            raise ValueError("no A")
        return letter

    program = Aggregate(
        Select(indices, indices, lambda key, query: key == query - 1), SequenceMap(only_without_a, tokens, indices)
    ).named("moved")
    ids = task.held_out[:40]
    found = program_edges(program, task, ids)
    with_a = np.array(["A" in sequence for sequence in task.sequences(ids)])
    assert 0 < with_a.sum() < 40
    np.testing.assert_array_equal(found.defined, ~with_a)
    assert not found.gathered[("moved",)][with_a].any()


@pytest.mark.parametrize("causal", [True, False])
def test_a_positions_own_edge_is_none_between_positions(task, causal):
    if not causal:
        task = task_from_program(Aggregate(Select(indices, indices, lambda k, q: k == 1), tokens), "ab", 4)
    found = between_positions(task)
    assert not found.diagonal().any()
    np.testing.assert_array_equal(found | np.eye(task.n_ctx, dtype=bool), task.visible)
