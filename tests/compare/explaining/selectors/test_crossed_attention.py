"""Selectors beside attention where variables that go together are taken apart."""

import numpy as np
import pytest
from explaining_samples import sample_of

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.heads import plans
from rasplens.compare.explaining.selectors.attended import Attended
from rasplens.compare.explaining.selectors.crossed_attention import CrossedAttention
from rasplens.compare.explaining.selectors.grammar import Candidate
from rasplens.compare.explaining.selectors.predicates import predicate
from rasplens.compare.explaining.selectors.tried import Tried, _first, _first_crossed
from rasplens.compile import rasp

WIDTH = "rasp.SelectorWidth(rasp.Select(rasp.indices, rasp.tokens, lambda k, q: k < q))"
"""How many positions lie before a token's number: it follows from the token."""


@pytest.fixture(scope="module")
def second_head():
    """A head that selects by the width, its attention, and the selectors by width and by token."""
    w = eval(WIDTH).named("w")
    program = rasp.SelectorWidth(rasp.Select(w, w, lambda k, q: k > 1)).named("count")
    sample, inputs = sample_of(program, vocab=(0, 1, 2, 3))
    first, second = next(plans(sample))
    tokens, _ = inputs.primitives()
    known = inputs.define("w", WIDTH, (tokens,), 2.0)
    rows = second.rows
    weights = [1 / len(rows)] * len(rows)
    attended = Attended(rows, sample.attention(second.layer, second.heads)[:, rows], np.array(weights))
    crossed = Crossed(sample, {(first.layer, first.heads): ["w"]})
    (by_width,), (by_token,) = (predicate(inputs, one, one, "k > 1", 1.0) for one in (known, tokens))
    each = [
        Candidate(f"rasp.Select({one.key.name}, {one.key.name}, lambda k, q: k > 1)", (one.key,), one.matrix, 1.0)
        for one in (by_width, by_token)
    ]
    return CrossedAttention(crossed, inputs, second, attended), attended, each


def test_only_what_the_model_reads_describes_it(second_head):
    elsewhere, on_sample, (by_width, by_token) = second_head
    assert on_sample.bits(by_width.matrix) == on_sample.bits(by_token.matrix) < 0.01
    assert elsewhere.bits(by_width) < 0.01
    assert elsewhere.bits(by_token) > 0.1


def test_without_crossed_values_it_is_as_on_the_sample(second_head):
    elsewhere, on_sample, (by_width, _) = second_head
    (known,) = by_width.reads
    other = elsewhere.inputs.define("other", WIDTH, known.needs, 2.0)
    unknown = Candidate(by_width.text.replace("(w, w,", "(other, other,"), (other,), by_width.matrix, 1.0)
    assert elsewhere.bits(unknown) == on_sample.bits(by_width.matrix)


def test_none_is_chosen_that_was_not_asked(second_head):
    """However many look good on the sample and are not."""
    elsewhere, _, (by_width, by_token) = second_head
    tried = [Tried(by_token, place / 1000, 2.0, 0.0, 0.0) for place in range(40)]
    tried.append(Tried(by_width, 0.039, 2.0, 0.0, 0.0))
    assert by_width not in [one.selector for one in _first(tried)]  # the negative control
    assert min(_first_crossed(tried, elsewhere), key=lambda one: one.bits).selector is by_width
