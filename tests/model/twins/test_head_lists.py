import numpy as np
import pytest

from rasplens.model import Config
from rasplens.model.twins.head_lists import head_of, heads_of, with_heads

CONFIG = Config(n_layers=2, n_heads=2, d_model=6, d_head=3, n_ctx=4, d_vocab=5, d_vocab_out=2)
TOKENS = np.array([[0, 1, 2, 3], [4, 4, 0, 1]])


@pytest.fixture
def model(random_transformer):
    return random_transformer(CONFIG, biases=True)


def test_heads_taken_apart_and_put_together_are_the_same(model):
    again = with_heads(model, {0: heads_of(model, 0), 1: heads_of(model, 1)})
    np.testing.assert_array_equal(again(TOKENS), model(TOKENS))


def test_a_wider_head_and_a_longer_list_change_no_other_head(model):
    first = {key: np.array(array) for key, array in head_of(model, 1, 0).items()}
    wide = first | {"W_V": np.pad(first["W_V"], ((0, 0), (0, 2))), "W_O": np.pad(first["W_O"], ((0, 2), (0, 0)))}
    wide["b_V"] = np.pad(first["b_V"], (0, 2))
    nothing = {key: np.zeros_like(array) for key, array in first.items()}
    changed = with_heads(model, {1: [wide, head_of(model, 1, 1), nothing]})
    assert (changed.config.n_heads, changed.config.d_head) == (3, 5)
    np.testing.assert_allclose(changed(TOKENS), model(TOKENS))
    fewer = with_heads(model, {1: [wide]})
    assert np.abs(fewer(TOKENS) - model(TOKENS)).max() > 0.01  # the negative control


def test_layers_and_heads_that_are_not_there_are_refused(model):
    with pytest.raises(ValueError, match=r"layers 0 to 1.* 2"):
        heads_of(model, 2)
    with pytest.raises(ValueError, match=r"heads 0 to 1.*-1"):
        head_of(model, 0, -1)
