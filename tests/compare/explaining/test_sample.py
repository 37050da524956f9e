"""Answers with heads or edges from other inputs."""

import numpy as np


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
