from dataclasses import replace

import pytest

from rasplens.learned import load_pretrained
from rasplens.model import causal_mask
from rasplens.reproductions.compressing import NARROW, THREE_LAYERS, TWO_LAYERS
from rasplens.tasks import get_task


@pytest.fixture(scope="module")
def task():
    """With few held-out pairs, on which the shipped model does as on all of them."""
    whole = get_task("compression")
    return replace(whole, held_out=whole.held_out[:40])


@pytest.fixture(scope="module")
def model():
    return load_pretrained("compression").transformer


def holds(entry, task, model):
    return {row.measure: row.holds for row in entry.findings(task, model)}


@pytest.fixture(scope="module")
def two_layers(task, model):
    return holds(TWO_LAYERS, task, model)


def test_the_floors_are_each_models_own(task, model, two_layers):
    """The shipped two layers reach what two layers reached, and not what three did."""
    digits = "both digits right, held-out pairs"
    assert two_layers[digits]
    assert not holds(THREE_LAYERS, task, model)[digits]


def test_leaking_attention_is_seen(task, model, two_layers):
    """The negative control: under a mask that lets the answers see the digits."""
    leaky = replace(model, mask=causal_mask(model.config.n_layers, task.n_ctx))
    leaked = "attention leaked to the digits"
    assert two_layers[leaked]
    assert not holds(TWO_LAYERS, task, leaky)[leaked]


def test_what_the_publications_share_is_stated_once():
    for entry in (THREE_LAYERS, NARROW):
        assert entry.source.startswith(TWO_LAYERS.source)
        assert entry.figures is TWO_LAYERS.figures
    assert (THREE_LAYERS.task, THREE_LAYERS.recipe, THREE_LAYERS.seed) == ("compression", "three_layers", 0)
    assert (NARROW.task, NARROW.recipe, NARROW.seed) == ("compression_notebook", "fast", 1)
