"""Interchange interventions on models whose variables are known to be there, or not."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import CompareConfig, pair
from rasplens.compare.evidence.interchange.accuracy import COLUMNS, interchange_table, interchanges
from rasplens.compare.evidence.interchange.pairs import (
    InterchangePairs,
    counterfactual,
    draw_pairs,
    interchange_pairs,
    interchangeable_positions,
    intermediate_variables,
)
from rasplens.compare.evidence.interchange.patching import Agreement, _agreement, accuracy_drop_without, agreement
from rasplens.compare.evidence.interchange.sites import best_site, mapped_subspaces
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compile import compile_program, run
from rasplens.compile.rasp import Aggregate, Select, SequenceMap, indices, tokens
from rasplens.tasks import task_from_program

POINT = "blocks.0.hook_resid_post"
"""Where a compiled induction head has the letter before, and has not yet used it."""


@pytest.fixture(scope="module")
def found(with_itself):
    return representations(with_itself)


@pytest.fixture(scope="module")
def pairs(with_itself):
    return interchange_pairs(with_itself, "previous", interchangeable_positions(with_itself, "previous"), seed=0)


def interchanged(pairing):
    held = representations(pairing), representations(pairing, "untrained")
    return interchanges(pairing, draw_pairs(pairing, 0), *held, seed=0)


@pytest.fixture(scope="module")
def tested(with_itself):
    return interchanged(with_itself)


def test_only_what_lies_between_input_and_output_is_tested(with_itself):
    assert intermediate_variables(with_itself) == ["previous"]


def test_pairs_say_what_the_program_says_with_the_variable_set(with_itself, pairs, task, induction):
    """By hand: the letter before, put where the swap says, in the interpreter."""
    for i in range(20):
        base, source = (task.sequences(with_itself.ids[[row[i]]])[0] for row in (pairs.base, pairs.source))
        own, other = ([None, *tokens[:-1]] for tokens in (base, source))
        values = [b if t else a for a, b, t in zip(own, other, pairs.intervened[i], strict=True)]
        answers = run(induction.program, base, causal=True, set={"previous": values})
        expected = [task.outputs[code] for code in pairs.expected[i]]
        assert expected == [answers[position] for position in task.loss_positions]
        plain = run(induction.program, base, causal=True)
        assert pairs.changes[i].tolist() == [
            answers[position] != plain[position] for position in task.loss_positions
        ]


def test_only_pairs_whose_answer_changes_are_kept(pairs, with_itself):
    assert len(pairs.base) == 100
    assert pairs.changes.any(axis=1).all()
    assert not pairs.changes.all()
    assert (pairs.base != pairs.source).all()
    for i in range(100):
        np.testing.assert_array_equal(
            pairs.changes[i], pairs.expected[i] != with_itself.program_answers(int(pairs.base[i]))
        )


def test_some_take_the_variable_everywhere_and_some_at_one_position(pairs, with_itself):
    counts = pairs.intervened.sum(axis=1)
    relevant = len(with_itself.relevant_positions("previous"))
    assert set(counts) == {1, relevant}
    assert 5 <= (counts == relevant).sum() <= 95
    assert set(pairs.positions) == set(with_itself.relevant_positions("previous"))


def test_pairs_are_the_seeds(with_itself, pairs):
    again, other = (
        interchange_pairs(with_itself, "previous", interchangeable_positions(with_itself, "previous"), seed=seed)
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(again.base, pairs.base)
    np.testing.assert_array_equal(again.expected, pairs.expected)
    assert not np.array_equal(other.base, pairs.base)


def test_a_variable_that_changes_no_answer_has_no_pairs(with_itself, monkeypatch):
    positions = interchangeable_positions(with_itself, "previous")
    few = replace(with_itself, config=replace(with_itself.config, pairs_tried=12))
    assert interchange_pairs(few, "previous", positions, seed=0) is None
    monkeypatch.setattr("rasplens.compare.models.pairing.Pairing.relevant_positions", lambda self, name: ())
    assert (
        interchange_pairs(with_itself, "previous", interchangeable_positions(with_itself, "previous"), seed=0)
        is None
    )


def test_an_empty_intervention_mask_changes_no_answer(with_itself):
    nowhere = np.zeros(with_itself.task.n_ctx, dtype=bool)
    plain = [with_itself.program_answers(i) for i in range(with_itself.n_inputs)]
    defined = [i for i, answer in enumerate(plain) if (answer >= 0).all()]
    assert 5 < len(defined) < len(plain)
    for i in defined:
        np.testing.assert_array_equal(counterfactual(with_itself, "previous", i, 0, nowhere), plain[i])


def test_answers_that_the_program_does_not_have_are_none(with_itself, pairs):
    """Where no letter before equals the present one, there is nothing to give."""
    codes = with_itself.codes["previous"]
    everywhere = np.ones(with_itself.task.n_ctx, dtype=bool)
    undefined = [
        counterfactual(with_itself, "previous", base, base - 1, everywhere) is None
        for base in range(1, len(codes))
    ]
    assert any(undefined)
    assert (
        counterfactual(with_itself, "previous", int(pairs.base[0]), int(pairs.source[0]), pairs.intervened[0])
        is not None
    )


def test_a_compiled_model_holds_its_own_variable_at_its_own_place(tested):
    (one,) = tested
    assert (one.variable, one.point, one.method) == ("previous", POINT, "linear map")
    assert one.accuracy.score >= 0.95
    assert one.rank == 7
    assert max(one.random, one.untrained, one.full_stream) < 0.6


def test_a_model_that_learned_nothing_does_not(with_noise):
    (one,) = interchanged(with_noise)
    assert one.variable == "previous"
    assert one.accuracy.score <= 0.2


def test_an_empty_mapping_changes_nothing(with_itself, pairs):
    found = agreement(with_itself.learned, pairs, POINT, {})
    assert (found.iia == 0).all()
    right = with_itself.learned.answers() == np.stack([with_itself.program_answers(i) for i in range(96)])
    assert right.all()
    assert (found.specificity == 1).all()
    assert found.score == 0


def test_a_subspace_that_holds_another_variable_does_not_do_it(with_itself, pairs, found):
    """The letter before, from the directions of the present one; and its own after they were used."""
    learned = with_itself.learned
    own = agreement(learned, pairs, POINT, mapped_subspaces(found, "previous", POINT))
    other = agreement(learned, pairs, POINT, mapped_subspaces(found, "tokens", POINT))
    late = "blocks.1.hook_resid_post"
    used = agreement(learned, pairs, late, mapped_subspaces(found, "previous", late))
    assert own.score >= 0.95
    assert max(other.score, used.score) < 0.5


def test_full_stream_patching_changes_too_much(with_itself, pairs, found):
    """What must change changes, if at all, along with what must not."""
    whole = agreement(with_itself.learned, pairs, POINT, None)
    own = agreement(with_itself.learned, pairs, POINT, mapped_subspaces(found, "previous", POINT))
    identity = {position: np.eye(with_itself.compiled.transformer.config.d_model) for position in pairs.positions}
    same = agreement(with_itself.learned, pairs, POINT, identity)
    np.testing.assert_array_equal(whole.iia, same.iia)
    np.testing.assert_array_equal(whole.specificity, same.specificity)
    assert whole.score < own.score - 0.3


def test_the_best_site_is_where_the_score_is_highest(with_itself, found):
    chosen = interchange_pairs(
        with_itself.fitting, "previous", interchangeable_positions(with_itself, "previous"), seed=0
    )
    point, method, subspaces = best_site(with_itself.fitting.learned, chosen, found, 0, das_steps=0)
    assert (point, method) == (POINT, "linear map")
    assert subspaces.keys() == mapped_subspaces(found, "previous", POINT).keys()


def test_agreement_counts_what_changes_and_what_does_not(with_itself):
    """By hand: two pairs with one answer that changes and five that do not, or all that change."""
    expected = np.array([[0, 1, 2, 3, 4, 5], [1, 1, 1, 1, 1, 1]])
    changes = np.array([[True, False, False, False, False, False], [True] * 6])
    pairs = InterchangePairs(
        "x", np.array([0, 1]), np.array([1, 0]), np.ones((2, 9), dtype=bool), expected, changes
    )
    found = _agreement(np.array([[0, 1, 2, 0, 0, 5], [1, 1, 1, 0, 0, 0]]), pairs)
    np.testing.assert_allclose(found.iia, [1, 0.5])
    np.testing.assert_allclose(found.specificity, [3 / 5, 1])
    assert found.score == 0.75
    assert Agreement(np.array([1.0, 1.0]), np.array([0.5, 0.0])).score == 0.25


def test_the_table_has_a_row_for_each_variable(tested):
    table = interchange_table(tested)
    assert tuple(table) == COLUMNS
    row = table.iloc[0]
    assert row["pairs"] == 100
    assert row["score"] == min(row["iia"], row["specificity"])
    assert interchange_table([]).empty


def test_holding_a_subspace_at_its_mean_drops_accuracy(with_itself, tested):
    (one,) = tested
    assert one.variable == "previous"
    assert one.ablated > 0.3
    assert one.ablated_random < one.ablated
    assert accuracy_drop_without(with_itself.learned, one.point, {}) == 0


def test_a_variable_that_follows_from_the_token_is_not_taken_there():
    """The first token, read everywhere: at the first position no directions hold it without the token itself."""
    first = Aggregate(Select(indices, indices, lambda key, query: key == 0), tokens).named("first")
    program = SequenceMap(lambda own, other: own == other, tokens, first).named("same_as_first")
    task = task_from_program(program, "abcd", 5)
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    pairing = pair(compiled, compiled, task, CompareConfig(n_inputs=100), 0)
    assert 0 in pairing.relevant_positions("first")
    assert interchange_pairs(pairing, "first", interchangeable_positions(pairing, "first"), seed=0).positions == [
        1,
        2,
        3,
        4,
    ]
    (own,) = interchanged(pairing)
    assert own.accuracy.score == 1
