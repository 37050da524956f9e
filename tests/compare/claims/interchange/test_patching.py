"""A model's answers with subspaces of an activation taken from another input."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare.claims.interchange.pairs import InterchangePairs, interchange_pairs
from rasplens.compare.claims.interchange.patching import (
    _agreement,
    accuracy_drop_without,
    agreement,
    alone,
)
from rasplens.compare.claims.interchange.sites import mapped_subspaces
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.model.interventions import Subspace, whole

POINT = "blocks.0.hook_resid_post"
"""Where a compiled induction head has the letter before, and has not yet used it."""


@pytest.fixture(scope="module")
def found(with_itself):
    return representations(with_itself)


@pytest.fixture(scope="module")
def pairs(with_itself):
    return interchange_pairs(
        with_itself.scored, "previous", with_itself.interchangeable_positions("previous"), seed=0
    )


def test_an_empty_mapping_changes_nothing(with_itself, pairs):
    found = agreement(with_itself.learned, pairs, POINT, {})
    assert (found.iia == 0).all()
    assert (found.specificity == 1).all()
    np.testing.assert_array_equal(found.right, ~pairs.changes)
    assert found.score == 0


def test_a_model_on_the_inputs_of_some_pairs_alone_answers_the_same(with_itself, pairs):
    few = pairs.of(slice(10))
    own = dict.fromkeys(pairs.positions, whole(with_itself.learned.width(POINT)))
    model, those = alone(with_itself.learned, few)
    assert model.n_inputs <= 20 < with_itself.scored.n_inputs
    np.testing.assert_array_equal(model.ids[those.base], with_itself.scored.ids[few.base])
    np.testing.assert_array_equal(model.ids[those.source], with_itself.scored.ids[few.source])
    there, here = (agreement(*each, POINT, own).right for each in ((model, those), (with_itself.learned, few)))
    np.testing.assert_array_equal(there, here)


def test_the_variables_own_directions_do_what_the_program_says(with_itself, pairs):
    """With no search at all: the axes of the compiled model."""
    own = with_itself.compiled.variables["previous"]
    axes = np.eye(with_itself.compiled.transformer.config.d_model)[:, own.directions]
    found = agreement(with_itself.learned, pairs, POINT, dict.fromkeys(pairs.positions, Subspace(axes, axes)))
    assert found.right.all()
    assert found.score == 1


def test_a_subspace_that_holds_another_variable_does_not_do_it(with_itself, pairs, found):
    """The letter before, from the directions of the present one; and its own after they were used."""
    learned = with_itself.learned
    own = agreement(learned, pairs, POINT, mapped_subspaces(learned, found, "previous", POINT))
    other = agreement(learned, pairs, POINT, mapped_subspaces(learned, found, "tokens", POINT))
    late = "blocks.1.hook_resid_post"
    used = agreement(learned, pairs, late, mapped_subspaces(learned, found, "previous", late))
    assert own.score >= 0.95
    assert max(other.score, used.score) < 0.5


def test_full_stream_patching_changes_too_much(with_itself, pairs, found):
    """What must change changes, if at all, along with what must not."""
    learned = with_itself.learned
    everything = agreement(learned, pairs, POINT, None)
    own = agreement(learned, pairs, POINT, mapped_subspaces(learned, found, "previous", POINT))
    identity = dict.fromkeys(pairs.positions, whole(with_itself.compiled.transformer.config.d_model))
    same = agreement(learned, pairs, POINT, identity)
    np.testing.assert_array_equal(everything.iia, same.iia)
    np.testing.assert_array_equal(everything.specificity, same.specificity)
    assert everything.score < own.score - 0.3


def test_agreement_counts_what_changes_and_what_does_not(with_itself):
    """By hand: two pairs with one answer that changes and five that do not, or all that change."""
    expected = np.array([[0, 1, 2, 3, 4, 5], [1, 1, 1, 1, 1, 1]])
    changes = np.array([[True, False, False, False, False, False], [True] * 6])
    pairs = InterchangePairs(
        "x", np.array([0, 1]), np.array([1, 0]), np.ones((2, 9), dtype=bool), expected, changes
    )
    answers = np.array([[0, 1, 2, 0, 0, 5], [1, 1, 1, 0, 0, 0]])
    found = _agreement(answers, pairs)
    np.testing.assert_allclose(found.iia, [1, 0.5])
    np.testing.assert_allclose(found.specificity, [3 / 5, 1])
    np.testing.assert_array_equal(found.right, answers == expected)
    assert found.score == 0.75
    np.testing.assert_array_equal(found.given, answers)
    assert replace(found, specificity=np.array([0.5, 0.0]), iia=np.array([1.0, 1.0])).score == 0.25


def test_holding_a_subspace_at_its_mean_drops_accuracy(with_itself, found):
    learned = with_itself.learned
    own = mapped_subspaces(learned, found, "previous", POINT)
    assert accuracy_drop_without(learned, POINT, own) > 0.3
    assert accuracy_drop_without(learned, POINT, {}) == 0
