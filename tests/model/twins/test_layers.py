import numpy as np
import pytest

from rasplens.model import Config
from rasplens.model.twins.layers import insert_idle_layer

CONFIG = Config(n_layers=2, n_heads=2, d_model=6, d_head=3, n_ctx=4, d_vocab=5, d_vocab_out=2, d_mlp=4)
TOKENS = np.array([[0, 1, 2, 3], [4, 4, 0, 1]])


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_idle_layer_computes_and_writes_nothing(random_transformer, at):
    model = random_transformer(CONFIG, biases=True)
    _, cache = insert_idle_layer(model, at).run_with_cache(TOKENS)
    np.testing.assert_array_equal(cache[f"blocks.{at}.hook_resid_pre"], cache[f"blocks.{at}.hook_resid_post"])
    assert cache[f"blocks.{at}.attn.hook_z"].std() > 0
    assert cache[f"blocks.{at}.mlp.hook_post"].std() > 0


def test_its_weights_follow_the_seed(random_transformer):
    model = random_transformer(CONFIG)
    first, again, other = (insert_idle_layer(model, 1, seed).weights["blocks.1.attn.W_Q"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_there_is_no_other_place(random_transformer):
    with pytest.raises(ValueError, match=r" 0 to 2.* 3"):
        insert_idle_layer(random_transformer(CONFIG), 3)
