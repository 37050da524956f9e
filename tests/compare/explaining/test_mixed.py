"""What heads gather, with each key's value from another input."""

from dataclasses import replace

import numpy as np
import pytest
from explaining_samples import sample_of

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.gathered import Step
from rasplens.compare.explaining.heads import Group
from rasplens.compare.explaining.mixed import mixed
from rasplens.compare.explaining.readout import readout
from rasplens.compare.explaining.selectors.grammar import Candidate
from rasplens.compile import rasp, run

EVERY = rasp.Select(rasp.indices, rasp.indices, lambda k, q: True)
ALL = "rasp.Select(rasp.indices, rasp.indices, lambda k, q: True)"
FIRST = "rasp.Select(rasp.indices, rasp.indices, lambda k, q: k < 2)"
MEAN = f"rasp.numerical(rasp.Aggregate({ALL}, rasp.numerical(rasp.Map(lambda x: int(x == 'b'), rasp.tokens))))"


@pytest.fixture(scope="module")
def in_twos():
    """A model of a table of a share, on inputs whose tokens come in twos: two of five shares never come about."""
    share = rasp.numerical(rasp.Aggregate(EVERY, rasp.numerical(rasp.Map(lambda x: int(x == "b"), rasp.tokens))))
    answers = rasp.Map(lambda x: "pqrst"[round(4 * x)], share).named("answers")
    ids = np.repeat(np.random.default_rng(0).integers(3, size=(60, 2)), 2, axis=1)
    sample, inputs = sample_of(answers, ids=ids)
    known = inputs.define("share", MEAN, (inputs.primitives()[0],), 2.0)
    selector = Candidate(ALL, (), np.ones((60, 4, 4), dtype=bool), 1.0)
    return sample, inputs, Step(Group(0, (0,), (1.0,) * 4), selector, (known,), 1.0, 0.0)


def test_a_table_has_the_means_that_no_input_brings_about(in_twos):
    sample, inputs, step = in_twos
    assert set(step.made[0].own_values) == {0, 0.5, 1}
    crossed = Crossed(sample, {(0, (0,)): ["share"]})
    found = readout(crossed, inputs, [*inputs.primitives(), *step.made], [step]).program
    assert run(found.expr, ["b", "a", "a", "a"]) == ["q"] * 4
    assert run(found.expr, ["b", "b", "a", "b"]) == ["s"] * 4


def test_variables_go_with_the_answers(in_twos):
    sample, inputs, step = in_twos
    on_mixed = mixed(sample, inputs, [step])
    codes, values = on_mixed.values(step.made[0])
    assert values[: len(step.made[0].values)] == step.made[0].values
    assert {0.25, 0.75} <= {*values}
    said = inputs.answers_of("pqrst")[(4 * np.array([0, *values[1:]])).astype(int)]
    np.testing.assert_array_equal(said[codes], on_mixed.answers)


def test_what_follows_from_a_mean_follows_from_the_mixed_one(in_twos):
    sample, inputs, step = in_twos
    on_mixed = mixed(sample, inputs, [step])
    many = inputs.define("many", "share > 0.6", step.made, 1.0)
    codes, values = on_mixed.values(many)
    means, numbers = on_mixed.values(step.made[0])
    np.testing.assert_array_equal(np.array(values)[codes], np.array([0, *numbers[1:]])[means] > 0.6)
    own, _ = on_mixed.values(inputs.primitives()[0])
    np.testing.assert_array_equal(own, inputs.primitives()[0].codes)


def test_there_is_nothing_to_mix_where_no_variable_is_gathered(in_twos):
    sample, inputs, step = in_twos
    assert mixed(sample, inputs, []) is None
    assert mixed(sample, inputs, [replace(step, made=())]) is None


def test_what_is_fetched_is_not_mixed(in_twos):
    """Keys that agree on the sample may not agree there: the model has a mixture, and RASP no value."""
    sample, inputs, step = in_twos
    fetched = inputs.define("fetched", f"rasp.Aggregate({FIRST}, rasp.tokens)", inputs.primitives(), 1.0)
    assert mixed(sample, inputs, [replace(step, made=(fetched,))]) is None
    assert mixed(sample, inputs, [replace(step, made=(*step.made, fetched))]) is None
