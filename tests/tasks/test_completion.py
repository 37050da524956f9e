import numpy as np
import pytest

from rasplens.learned import load_pretrained
from rasplens.model import Config
from rasplens.tasks.completion import complete


def test_each_letter_is_the_likeliest_behind_those_before():
    model = load_pretrained("copy").transformer
    prompts = np.array([[0, 1, 2, 3, 4, 5, 0, 1], [7, 8, 9, 7, 8, 9, 7, 8]])
    written = complete(model, prompts, 12)
    np.testing.assert_array_equal(written[:, :8], prompts)
    for length in range(8, 12):
        np.testing.assert_array_equal(written[:, length], model(written[:, :length])[:, -1].argmax(axis=-1))


def test_what_cannot_be_written_is_refused(random_transformer):
    with pytest.raises(ValueError, match="24 positions; 25 were asked for"):
        complete(load_pretrained("copy").transformer, np.array([[0]]), 25)
    config = Config(n_layers=1, n_heads=1, d_model=4, d_head=4, n_ctx=5, d_vocab=3, d_vocab_out=4)
    with pytest.raises(ValueError, match="do not stand for its tokens"):
        complete(random_transformer(config), np.array([[0]]), 3)
