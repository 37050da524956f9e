"""The trials of a part, and what controls are drawn."""

import numpy as np
import pytest

from rasplens.compare.claims.edges.edge_patching import EdgePatch
from rasplens.compare.claims.edges.program_edges import between_positions
from rasplens.compare.claims.edges.questions import GatheredEdges, Keys, questions
from rasplens.compare.claims.effects.asking import Asking, some, telling


@pytest.fixture
def asking(with_itself):
    return Asking(with_itself.scored, np.random.default_rng(0))


@pytest.fixture(scope="module")
def asked(with_itself):
    return next(one for one in questions(with_itself.scored, 0, 40) if isinstance(one.subject, GatheredEdges))


def test_one_answer_of_each_pair_counts_and_it_is_one_of_those(asking, asked):
    trials = asking.trials(asked.patch.base, asked.changes, asked.expected)
    assert len(trials) == asked.changes.any(axis=1).sum() > 20
    assert asked.changes[trials.pair, trials.answer].all()
    own = asking.pairing.reference.answers()[asked.patch.base]
    np.testing.assert_array_equal(trials.own, asking.columns[own[trials.pair, trials.answer]])
    np.testing.assert_array_equal(trials.other, asking.columns[asked.expected[trials.pair, trials.answer]])


def test_other_answers_are_neither_of_the_two(asking, asked):
    trials = asking.trials(asked.patch.base, asked.changes, asked.expected)
    others = asking.against_others(trials)
    assert len(others) == len(trials)
    assert (others.other != trials.own).all()
    assert (others.other != trials.other).all()
    assert len(np.unique(others.other)) > 3
    assert np.isin(others.other, asking.columns).all()


def test_other_edges_are_as_many_and_no_edge_of_the_patch(asking, asked):
    patch, task = asked.patch, asking.pairing.task
    others = asking.other_edges(patch)
    assert not (others & patch.edges).any()
    assert not (others & ~between_positions(task)).any()
    free = (between_positions(task) & ~patch.edges).sum(axis=2)
    np.testing.assert_array_equal(others.sum(axis=2), np.minimum(free, patch.edges.sum(axis=2)))
    assert others.any()


def test_no_edge_has_no_other_edges(asking, asked):
    none = EdgePatch(asked.patch.base, asked.patch.source, np.zeros_like(asked.patch.edges), "values")
    assert not asking.other_edges(none).any()


def test_other_heads_are_as_many_as_there_are(asking):
    first, *rest = asking.learned.heads
    assert set(asking.other_heads([first])) <= set(rest)
    assert len(asking.other_heads([first])) == 1
    assert asking.other_heads(asking.learned.heads) == ()


def test_the_halves_of_the_inputs_have_none_in_common(asking):
    first, second = asking.halves
    assert not (first.base & second.base).any()
    assert (first.base | second.base).all()
    assert first.source is first.base


def test_some_questions_are_as_many_of_each_kind_as_are_wanted(asked):
    few = some(asked, 10)
    assert few.changes.any(axis=1).sum() >= 10
    assert few.at_risk.any(axis=1).sum() >= 10
    assert len(few) <= 20
    assert len(some(asked, 10_000)) == len(asked)


@pytest.mark.slow
def test_questions_that_tell_change_answers_by_few_edges_or_keep_them_with_many(with_itself):
    keys = next(one for one in questions(with_itself.scored, 0, 60) if isinstance(one.subject, Keys))
    found, n_edges = telling(keys, 20), keys.patch.edges.sum(axis=(1, 2))
    changing, keeping = found.changes.any(axis=1), found.at_risk.any(axis=1)
    assert (changing.sum(), keeping.sum(), (changing & keeping).sum()) == (20, 20, 0)
    sizes = found.patch.edges.sum(axis=(1, 2))
    changes, keeps = (n_edges[kind.any(axis=1)] for kind in (keys.changes, keys.at_risk))
    np.testing.assert_array_equal(np.sort(sizes[changing]), np.sort(changes)[:20])
    np.testing.assert_array_equal(np.sort(sizes[keeping]), np.sort(keeps)[-20:])
    assert sizes[changing].max() <= np.median(changes)
    assert len(telling(keys, 10_000)) >= len(keys)
