"""Which heads matter, and where they look."""

from types import SimpleNamespace

import numpy as np

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.heads import codes_of_values, plans, tried_selectors
from rasplens.compare.explaining.sample import Sample

SAME = "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)"


def test_heads_that_matter_are_in_the_order_of_the_forward_pass(slots):
    sample, _ = slots
    alone, together = plans(sample)
    assert [(one.layer, one.heads, one.rows) for one in alone] == [
        (0, (0,), [2]), (0, (1,), [2]), (1, (0,), [3]), (1, (1,), [4]),
    ]  # fmt: skip
    assert [(one.layer, one.heads) for one in together] == [(0, (0, 1)), (1, (0, 1))]


def test_the_selector_of_a_head_comes_first(histogram, induction):
    sample, inputs = histogram
    ((group,),) = plans(sample)
    best = tried_selectors(Crossed(sample, {}), inputs, group, inputs.primitives(), is_last=True)[0]
    assert best.selector.text == SAME
    assert best.kept == 1
    assert best.bits < 0.01
    assert best.counted > 0.99  # a start token gets the rest
    sample, inputs = induction
    group = next(plans(sample))[0]
    best = tried_selectors(Crossed(sample, {}), inputs, group, inputs.primitives(), is_last=False)[0]
    assert best.selector.text == "rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1)"


def test_what_reads_everything_does_not_come_first_although_it_keeps_all_answers(induction):
    sample, inputs = induction
    group = next(plans(sample))[0]
    everything = np.broadcast_to(inputs.task.visible, (len(sample), 5, 5))
    none = sample.edges_of(group.heads, ~everything & inputs.task.visible)
    assert sample.kept_with_values({group.layer: none}, sample.sources) == 1
    found = tried_selectors(Crossed(sample, {}), inputs, group, inputs.primitives(), is_last=False)
    assert not any((one.selector.matrix == everything).all() for one in found[:1])


def test_the_codes_of_answers_are_the_tasks(histogram):
    sample, inputs = histogram
    tokens, _ = inputs.primitives()
    count = inputs.define("n", f"rasp.SelectorWidth({SAME})", (tokens,), 2.0)
    np.testing.assert_array_equal(codes_of_values(inputs, count)[count.codes], sample.answers)
    assert (codes_of_values(inputs, tokens)[tokens.codes] == -1).all()


class Relevant(Sample):
    """A model of two layers in which answers change if all of some heads come from elsewhere."""

    def head_elsewhere(self, layer, heads, position):
        return layer, set(heads)

    def kept(self, interventions):
        ((layer, heads),) = interventions
        changes = any(layer == at and needed <= heads for at, needed in CHANGES)
        return 0.5 if changes else 1.0


CHANGES = (0, {1}), (1, {0, 2})
"""The second head of the first layer; of the second layer two that stand in for each other."""


def test_heads_that_stand_in_for_each_other_are_together_and_others_alone(unchecked):
    layers = SimpleNamespace(attending_layers=[0, 1], heads_of=lambda layer: range(3), n_pos=2)
    alone, *more = plans(Relevant(layers, []))
    assert [(one.layer, one.heads) for one in alone] == [(0, (1,)), (1, (0, 2))]
    assert not more
