"""From variables to answers."""

import numpy as np
import pytest
from explaining_samples import sample_of

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.readout import _simplest, readout
from rasplens.compile import rasp

SAME = "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)"


def known_of(inputs):
    tokens, indices = inputs.primitives()
    return [tokens, indices, inputs.define("n", f"rasp.SelectorWidth({SAME})", (tokens,), 2.0)]


def count():
    return rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("count")


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (count(), "n"),
        (count() > 2, "n > 2"),
        (count() + rasp.indices, "n + rasp.indices"),
        (count() == rasp.indices, "n == rasp.indices"),
        (rasp.tokens, "rasp.Map(lambda x: x, rasp.tokens)"),
    ],
)
def test_a_formula_is_found_where_there_is_one(program, text):
    sample, inputs = sample_of(program.named("answers"))
    found = readout(Crossed(sample, {}), inputs, known_of(inputs), ())
    assert found.agreement == 1
    symmetric = " ".join(reversed(text.split(" "))) if " + " in text or " == " in text else text
    assert found.program.text in (text, symmetric)


def test_else_a_table_is_read_off_one_half_and_scored_on_the_other():
    odd = rasp.SequenceMap(lambda token, n: f"{token}{n % 2}", rasp.tokens, count()).named("odd")
    sample, inputs = sample_of(odd, n_inputs=81)
    found = readout(Crossed(sample, {}), inputs, known_of(inputs), ())
    assert 0.9 < found.agreement < 1  # some pairs of values occur in one half alone
    assert found.program.text.startswith("rasp.SequenceMap(lambda x, y: {")


def test_answers_that_follow_from_no_variable_are_not_agreed_with():
    sample, inputs = sample_of(count())
    found = readout(Crossed(sample, {}), inputs, inputs.primitives(), ())
    assert found.agreement < 0.9
    assert found.unread == 0
    assert np.isfinite(found.cost)


def test_a_choice_between_two_variables_is_found():
    """Four variables decide, of which a table of three would not tell the answers."""
    last = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 3), rasp.tokens)
    chosen = rasp.Where((count() > 1) & (rasp.indices != 1), rasp.tokens, last).named("chosen")
    sample, inputs = sample_of(chosen, n_inputs=80)
    tokens, indices, n = known_of(inputs)
    text = "rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 3), rasp.tokens)"
    found = readout(
        Crossed(sample, {}), inputs, [tokens, indices, n, inputs.define("last", text, (tokens,), 2.0)], ()
    )
    assert found.agreement == 1
    assert found.program.text.startswith("rasp.Where(rasp.SequenceMap(")


@pytest.mark.parametrize(
    ("least", "most", "between"),
    [(4 / 9, 5 / 9, 0.5), (0.6, 0.75, 2 / 3), (0.3, 0.1 + 0.2, 0.1 + 0.2), (1.0, 1.5, 4 / 3)],
)
def test_a_threshold_is_the_simplest_number_between_two_values(least, most, between):
    assert _simplest(least, most) == pytest.approx(between)
    assert least <= _simplest(least, most) <= most
