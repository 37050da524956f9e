"""A model among the parts of another; what it answers is tested with `rasplens.compile.plant`."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.errors import RaspLensError
from rasplens.model import Config, Transformer, causal_mask
from rasplens.model.constant_norm import Readout
from rasplens.model.twins.guest import Guest, planted

HOST = Config(
    n_layers=3, n_heads=2, d_model=12, d_head=4, n_ctx=6, d_vocab=9, d_vocab_out=9, d_mlp=8, normalization="LN"
)
GUEST = Config(n_layers=1, n_heads=1, d_model=6, d_head=3, n_ctx=5, d_vocab=2, d_vocab_out=2, d_mlp=4)


def causal(model):
    return Transformer(model.config, dict(model.weights), causal_mask(model.config.n_layers, model.config.n_ctx))


@pytest.fixture
def host(random_transformer):
    return causal(random_transformer(HOST, biases=True))


def guest_of(model):
    readout = Readout(np.asarray(model.W_U, dtype=float), np.zeros(2))
    return Guest(causal(model), (7, 8), (7, 8), readout, gap=1.0, longest=10.0)


def order(n=3):
    return [np.arange(3)] * n


def test_other_tokens_are_read_as_before_and_heads_stand_in_the_order_that_is_given(host, random_transformer):
    guest = guest_of(random_transformer(GUEST))
    tokens = np.random.default_rng(0).integers(0, 7, (20, 6))
    found = planted(host, guest, [1], order())
    np.testing.assert_allclose(found(tokens), host(tokens), atol=1e-3 * np.abs(host(tokens)).max())
    turned = planted(host, guest, [1], [np.array([2, 0, 1])] * 3)
    np.testing.assert_allclose(turned(tokens), found(tokens), atol=1e-9 * np.abs(host(tokens)).max())
    np.testing.assert_array_equal(turned.weights["blocks.1.attn.W_Q"][0], found.weights["blocks.1.attn.W_Q"][2])
    own = np.array([[7, 8, 7, 7, 8]])
    assert np.abs(found(own) - host(own)).max() > 1


def test_a_guest_with_biases_or_more_layers_than_places_is_refused(host, random_transformer):
    with pytest.raises(RaspLensError, match="Weights of the program"):
        planted(host, guest_of(random_transformer(GUEST, biases=True)), [1], order())
    plain = guest_of(random_transformer(GUEST))
    for layers in ([0], [1, 2], [3], []):  # the first passes positions on
        with pytest.raises(RaspLensError, match="ascending, of 1 to 2"):
            planted(host, plain, layers, order())
    long = guest_of(random_transformer(replace(GUEST, n_ctx=7)))
    with pytest.raises(RaspLensError, match="7 positions, the host only 6"):
        planted(host, long, [1], order())
