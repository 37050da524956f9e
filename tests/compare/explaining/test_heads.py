"""Which heads matter."""

from types import SimpleNamespace

from rasplens.compare.explaining.heads import plans
from rasplens.compare.explaining.sample import Sample


def test_heads_that_matter_are_in_the_order_of_the_forward_pass(slots):
    sample, _ = slots
    alone, together = plans(sample)
    assert [(one.layer, one.heads, one.rows) for one in alone] == [
        (0, (0,), [2]), (0, (1,), [2]), (1, (0,), [3]), (1, (1,), [4]),
    ]  # fmt: skip
    assert [(one.layer, one.heads) for one in together] == [(0, (0, 1)), (1, (0, 1))]


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
