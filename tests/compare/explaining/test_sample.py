"""Answers with heads or edges from other inputs."""

import numpy as np
from explaining_samples import sample_of

from rasplens.compare.explaining.sample import Sample
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compile import rasp
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task


def edges(sample, value):
    shape = len(sample), sample.studied.n_pos, sample.studied.n_pos
    return np.full(shape, value)


def test_nothing_from_elsewhere_keeps_all_answers(induction):
    sample, _ = induction
    assert sample.kept([]) == 1
    none = sample.edges_of((0,), edges(sample, False))
    assert sample.kept_with_values({0: none}, sample.sources) == 1


def test_values_from_elsewhere_change_answers_along_the_edges_that_matter(induction):
    sample, _ = induction
    matrix = edges(sample, False)
    matrix[:, 1:, :][:, np.arange(4), np.arange(4)] = True  # the position before
    before, others = (sample.edges_of((0,), one) for one in (matrix, ~matrix))
    assert sample.kept_with_values({0: before}, sample.sources) < 1
    assert sample.kept_with_values({0: others}, sample.sources) == 1


def test_a_source_for_all_positions_is_the_same_one_for_each(induction):
    sample, _ = induction
    everything = sample.edges_of((0,), edges(sample, True))
    source = sample.sources[0]
    by_position = np.repeat(source[:, None], sample.studied.n_pos, axis=1)
    one, other = (sample.values_elsewhere(0, everything, which) for which in (source, by_position))
    np.testing.assert_array_equal(one.value, other.value)


def test_a_head_matters_where_it_is_read(slots):
    sample, _ = slots
    relevance = [1 - sample.kept([sample.head_elsewhere(0, (0,), position)]) for position in range(5)]
    assert relevance[2] > 0  # SEP gathers a digit
    assert relevance[0] == relevance[1] == relevance[3] == relevance[4] == 0


def test_keys_are_selected_by_their_score_beside_a_start_token(histogram):
    """Where a head counts, and where it attends to the best of what it selects."""
    sample, inputs = histogram
    same = inputs.ids[:, None, :] == inputs.ids[:, :, None]
    layer = sample.studied.attending_layers[0]
    np.testing.assert_array_equal(sample.above_start(layer, (0,)), same)
    latest = rasp.SelectBest(rasp.tokens, rasp.tokens, lambda k, q: k != q, rasp.indices)
    sample, inputs = sample_of(rasp.Aggregate(latest, rasp.tokens, default="none"))
    layer = sample.studied.attending_layers[0]
    other = inputs.ids[:, None, :] != inputs.ids[:, :, None]
    np.testing.assert_array_equal(sample.above_start(layer, (0,)), other)


def test_a_query_of_another_input_meets_the_key_at_its_own_position(histogram):
    """Pairs of tokens at one position, which no input has: they are alike or not, all the same."""
    sample, inputs = histogram
    source = sample.sources[0]
    layer = sample.studied.attending_layers[0]
    own = sample.selected_at_own(layer, (0,), source)
    np.testing.assert_array_equal(own, inputs.ids == inputs.ids[source])
    assert 0 < own.mean() < 1


def test_without_a_start_token_scores_say_nothing_of_selection():
    task = get_task("induction")
    sample = Sample(as_studied_model(load_pretrained("induction"), task, task.held_out[:10]), [])
    assert sample.above_start(0, (0,)) is None


def test_without_a_start_token_own_edges_are_selected_beside_the_highest():
    is_a = rasp.numerical(rasp.Map(lambda token: int(token == "a"), rasp.tokens))
    alike = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    sample, inputs = sample_of(rasp.numerical(rasp.Aggregate(alike, is_a)).named("share"))
    assert sample.studied.vocabulary.positions[0] == 0
    source = sample.sources[0]
    np.testing.assert_allclose(
        sample.selected_at_own(0, (0,), source), inputs.ids == inputs.ids[source], atol=1e-4
    )
