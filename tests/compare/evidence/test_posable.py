"""Which interventions pose a question that the task could."""

import numpy as np

from rasplens.compare.evidence.posable import posable, selection_sizes


def test_the_size_of_a_selection_is_the_inverse_of_its_sum_of_squares():
    """In tenths: so many keys with equal attention."""
    rows = np.zeros((4, 6))
    rows[0, 0], rows[1, :2], rows[2, :5] = 1, 1 / 2, 1 / 5
    np.testing.assert_array_equal(selection_sizes(rows), [10, 20, 50, 0])
    np.testing.assert_array_equal(selection_sizes(np.array([[0.5, 0.25, 0.25]])), [round(10 / 0.375)])


def patterns(pairing):
    reference = pairing.reference
    return {layer: reference.whole_pattern(layer) for layer in range(reference.n_layers)}


def test_the_tasks_own_inputs_are_posed_where_the_program_answers(with_itself):
    asked = with_itself.reference.answers()
    posed = posable(with_itself).are_posed(asked, patterns(with_itself))
    np.testing.assert_array_equal(posed, (asked >= 0).all(axis=1))
    assert 0 < posed.sum() < len(posed)


def test_other_answers_and_other_selections_are_not(with_itself):
    known, own = posable(with_itself), patterns(with_itself)
    asked = with_itself.reference.answers()
    posed = known.are_posed(asked, own)
    never = np.argwhere(~known.answers)
    if len(never):
        answer, code = never[0]
        other = asked.copy()
        other[:, answer] = code
        assert not known.are_posed(other, own).any()
    (layer, head, place), sizes = next(iter(known.rows.items()))
    assert sizes[10]
    assert not sizes[20]  # the letter before is one letter
    two = {at: pattern.copy() for at, pattern in own.items()}
    two[layer][:, head, place] = 0
    two[layer][:, head, place, :2] = 0.5
    assert posed.any()
    assert not known.are_posed(asked, two).any()


def test_only_rows_that_reach_an_answer_count(with_itself):
    known = posable(with_itself)
    relevant = {
        (layer, head, with_itself.reference.at(position))
        for (layer, head), positions in with_itself.relevant_rows.items()
        for position in positions
    }
    assert set(known.rows) == relevant
