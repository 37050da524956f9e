"""The effect of patched edges, in all heads or in those that carry values."""

import numpy as np
import pytest

from rasplens.compare.claims.edges.questions import GatheredEdges, Keys, Queries, questions
from rasplens.compare.claims.effects.asking import Asking
from rasplens.compare.claims.effects.edge_effects import Groups, drawn_for, edge_test
from rasplens.compare.claims.effects.passes import with_edges


@pytest.fixture
def asking(with_itself):
    return Asking(with_itself.scored, np.random.default_rng(0))


@pytest.fixture(scope="module")
def asked(with_itself):
    return {type(one.subject): drawn_for(one, 30) for one in questions(with_itself.scored, 0, 120)}


@pytest.mark.parametrize("kind", [Keys, Queries])
def test_of_a_large_model_keys_and_queries_are_patched_in_the_heads_that_carry(asking, asked, kind):
    """What is found is a share of what these carry; other heads may read the same keys for something else."""
    heads = tuple(asking.learned.heads)
    of_all = edge_test(asking, asked[kind], Groups(heads, 1.0), is_large=True)
    of_half = edge_test(asking, asked[kind], Groups(heads, 0.5), is_large=True)
    assert of_all.parts[0].share == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(of_half.parts[0].expected, of_all.parts[0].expected / 2)
    assert "which carry 50% at most" in of_half.reason
    assert "carry" not in of_all.reason


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        (Groups((), float("nan")), "no heads are known"),
        (Groups(((0, 0),), 0.3), "carry 30%"),
        (Groups(((0, 0),), 0.9, ("pointer", "the counts")), "pointer and the counts is not known"),
    ],
)
def test_of_a_large_model_whose_heads_are_not_known_they_leave_it_open(asking, asked, groups, why):
    found = edge_test(asking, asked[Keys], groups, is_large=True)
    assert (found.is_open, found.parts) == (True, ())
    assert why in found.reason
    of_small = edge_test(asking, asked[Keys], groups, is_large=False)
    assert of_small.parts[0].share == pytest.approx(1, abs=0.05)
    assert "in L" not in of_small.reason


def test_a_trial_is_right_if_half_of_what_the_heads_carry_moves(asking, asked):
    """Heads that carry half turn no answer over, though they do all that they can."""
    keys, heads = asked[Keys], tuple(asking.learned.heads)
    logits = with_edges(asking.learned, keys.patch, heads)
    trials = asking.trials(keys.patch.base, keys.changes, keys.expected)
    before, after = asking.measured(trials, keys.patch.base, logits)
    weak = (before + after) / 2  # what is left if half of the work is done elsewhere
    assert not (weak < -0.1 * before).any()
    found = edge_test(Asking(asking.pairing, np.random.default_rng(0)), keys, Groups(heads, 0.5), is_large=True)
    changes, stays = found.trials
    assert changes.right.all()
    assert stays.right.all()


def test_values_are_patched_in_all_heads(asking, asked):
    heads = tuple(asking.learned.heads)
    found = edge_test(asking, asked[GatheredEdges], Groups(heads, 0.5), is_large=True)
    assert found.parts[0].share == pytest.approx(1, abs=0.05)
    assert "in L" not in found.reason
    assert found.floor < 0.5


def test_of_keys_and_queries_each_question_asks_for_a_change_or_for_none(asked):
    """Their edges are drawn, and other ones tell most of each; those of a selector are as they are."""
    for kind in (Keys, Queries):
        assert not (asked[kind].changes.any(axis=1) & asked[kind].at_risk.any(axis=1)).any()
    values = asked[GatheredEdges]
    assert (values.changes.any(axis=1) & values.at_risk.any(axis=1)).any()
