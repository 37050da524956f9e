"""A sample on which what heads leave comes from other inputs."""

import numpy as np
import pytest
from explaining_samples import sample_of

from rasplens.compare.explaining.crossed import UNMET, Crossed
from rasplens.compile import rasp

SAME = "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)"


@pytest.fixture(scope="module")
def own_and_width():
    """The answer is the token, followed by how often it occurs."""
    width = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ))
    sample, inputs = sample_of(rasp.SequenceMap(lambda token, n: f"{token}{n}", rasp.tokens, width).named("both"))
    known = inputs.define("n", f"rasp.SelectorWidth({SAME})", (inputs.primitives()[0],), 2.0)
    return sample, inputs, known


def test_the_answers_follow_the_crossed_variable(own_and_width):
    sample, inputs, n = own_and_width
    crossed = Crossed(sample, {(0, (0,)): ["n"]})
    counts = np.array(n.values, dtype=object)[crossed.codes(n)]
    tokens = np.array(inputs.task.vocab)[inputs.ids]
    wanted = np.vectorize(lambda token, count: f"{token}{count}")(tokens, counts)
    said = np.array(inputs.task.outputs, dtype=object)[crossed.answers]
    assert (said == wanted)[crossed.answers >= 0].mean() > 0.95
    assert (crossed.answers != sample.answers).mean() > 0.3


def test_of_every_other_input_what_is_left_comes_from_other_positions(own_and_width):
    sample, inputs, _ = own_and_width
    place = inputs.primitives()[1]
    named = Crossed(sample, {(0, (0,)): [place.name]})
    moved = (named.codes(place) != place.codes).all(axis=1)
    np.testing.assert_array_equal(moved, named.moved)


def test_without_heads_nothing_is_crossed(own_and_width):
    sample, inputs, n = own_and_width
    crossed = Crossed(sample, {})
    np.testing.assert_array_equal(crossed.answers, sample.answers)
    np.testing.assert_array_equal(crossed.codes(inputs.primitives()[0]), inputs.primitives()[0].codes)
    assert crossed.codes(n) is None  # other heads would have to make it


def test_what_follows_from_crossed_variables_is_looked_up(own_and_width):
    sample, inputs, n = own_and_width
    crossed = Crossed(sample, {(0, (0,)): ["n"]})
    both = inputs.define(
        "both", "rasp.SequenceMap(lambda x, y: (x, y), rasp.tokens, n)", [inputs.primitives()[0], n], 1.0
    )
    codes = crossed.codes(both)
    values = np.array([None, *both.own_values], dtype=object)[np.maximum(codes, 0)]
    for token, count, value, code in zip(
        inputs.primitives()[0].codes.ravel(), crossed.codes(n).ravel(), values.ravel(), codes.ravel(), strict=True
    ):
        if code != UNMET:
            assert value == (inputs.primitives()[0].values[token], n.values[count])


def test_what_does_not_follow_from_what_it_needs_is_not_looked_up(own_and_width):
    sample, inputs, n = own_and_width
    text = "rasp.SequenceMap(lambda i, x: x if i else 0, rasp.indices, n)"
    assert Crossed(sample, {(0, (0,)): ["n"]}).codes(inputs.define("late", text, [n], 1.0)) is None
