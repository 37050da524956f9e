"""Which interventions pose a question that the task could."""

import numpy as np
import pytest

from rasplens.compare import CompareConfig, compare, pair
from rasplens.compare.evidence.interchange.pairs import interchange_pairs, interchangeable_positions
from rasplens.compare.evidence.posable import posable, selections
from rasplens.compare.models.studied_model import scores_point
from rasplens.compile import compile_program, programs
from rasplens.compile.rasp import Aggregate, Comparison, Select, causal, indices, tokens
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task


def test_selections_differ_by_their_size_and_by_whether_there_was_a_choice():
    """With the BOS first: two keys; none; two that are counted; the best of three; the only one of its kind."""
    scores = np.array([
        [28.0, 56, 0, 56], [28, 0, 0, 0], [56, 56, 56, 0], [140, 500, 168, 444], [140, 0, 168, 0],
    ])  # fmt: skip
    np.testing.assert_array_equal(selections(scores, has_bos=True), [3 * 2 + 2, 3 * 1, 3 * 3 + 2, 3 + 2, 3 + 1])
    scores = np.array([[-np.inf, -np.inf], [0, -np.inf], [56, 56], [56, 28]])
    np.testing.assert_array_equal(selections(scores, has_bos=False), [0, 4, 8, 4])


def scores_of(pairing):
    reference = pairing.reference
    return {layer: reference.whole(scores_point(layer)) for layer in range(reference.n_layers)}


def test_the_tasks_own_inputs_are_posed_where_the_program_answers(with_itself):
    asked = with_itself.reference.answers()
    posed = posable(with_itself).are_posed(asked, scores_of(with_itself))
    np.testing.assert_array_equal(posed, (asked >= 0).all(axis=1))
    assert 0 < posed.sum() < len(posed)


def test_other_answers_and_other_selections_are_not(with_itself):
    known, own = posable(with_itself), scores_of(with_itself)
    asked = with_itself.reference.answers()
    posed = known.are_posed(asked, own)
    never = np.argwhere(~known.answers)
    if len(never):
        answer, code = never[0]
        other = asked.copy()
        other[:, answer] = code
        assert not known.are_posed(other, own).any()
    (layer, head, place), sizes = next(iter(known.rows.items()))
    assert sizes[3 + 1]
    assert not sizes[2 * 3 + 2]  # the letter before is one letter
    two = {at: scores.copy() for at, scores in own.items()}
    two[layer][:, head, place, 1:3] = two[layer][:, head, place].max(axis=1, keepdims=True)
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


def by_any_match():
    """Induction without a rule for several matches, which have no value."""
    before = Aggregate(Select(indices, indices, lambda key, query: key == query - 1), tokens).named("previous")
    return causal(Aggregate(Select(before, tokens, Comparison.EQ), tokens)).named("by_any_match")


@pytest.mark.parametrize("build", [programs.induction, by_any_match])
def test_where_a_task_has_one_match_several_are_not_posed_however_a_program_ranks_them(build):
    """Of the latest of two matches a model says nothing that never saw two. It was said to fail there."""
    task = get_task("induction", n_letters=8, block=6, asked=3)
    compiled = compile_program(build(), task.vocab, task.n_ctx, mask=task.visible, partial="allow")
    pairing = pair(compiled, compiled, task, CompareConfig(n_inputs=200, n_fitting=200), 0)
    pairs = interchange_pairs(pairing, "previous", interchangeable_positions(pairing, "previous"), seed=0)
    codes = pairing.codes["previous"]
    previous = np.where(pairs.intervened, codes[pairs.source], codes[pairs.base])
    asked = pairing.ids[pairs.base][:, 6:]
    seen = np.arange(9) < 6 + np.arange(3)[:, None] + 1
    matches = ((previous[:, None, :] == asked[:, :, None]) & seen).sum(axis=2)
    np.testing.assert_array_equal(matches, 1)


@pytest.mark.slow
def test_the_shipped_induction_model_implements_its_program():
    task = get_task("induction")
    compiled = compile_program(task.programs["induction"], task.vocab, task.n_ctx, mask=task.visible)
    result = compare(compiled, load_pretrained("induction"), task=task)
    assert result.verdict.answer == "implements"
    assert set(result.verdict.levels.values()) == {"implements"}
