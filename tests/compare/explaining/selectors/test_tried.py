"""Where heads look."""

import numpy as np
from explaining_samples import sample_of

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.heads import plans
from rasplens.compare.explaining.selectors.tried import tried_selectors
from rasplens.compile import rasp

SAME = "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)"


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


def test_a_selector_is_of_what_the_model_reads_and_not_of_what_goes_with_it():
    """The first head's count follows from the token, so on inputs a selector of tokens is the same."""
    text = "rasp.SelectorWidth(rasp.Select(rasp.indices, rasp.tokens, lambda k, q: k < q))"
    w = eval(text).named("w")
    program = rasp.SelectorWidth(rasp.Select(w, w, lambda k, q: k > 1)).named("count")
    sample, inputs = sample_of(program, vocab=(0, 1, 2, 3))
    first, second = next(plans(sample))
    known = [*inputs.primitives(), inputs.define("w", text, inputs.primitives()[:1], 2.0)]
    best = [
        tried_selectors(Crossed(sample, made), inputs, second, known, is_last=True)[0]
        for made in ({}, {(first.layer, first.heads): ["w"]})
    ]
    assert [[read.name for read in one.selector.reads] for one in best] == [["rasp.tokens"] * 2, ["w"] * 2]
    assert best[1].bits < 0.01
