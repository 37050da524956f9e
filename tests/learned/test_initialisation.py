import numpy as np
import pytest

from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, get_recipe, untrained, untrained_like
from rasplens.tasks import get_task


def test_weights_have_hooked_transformers_spread():
    model = untrained(get_recipe("sort", "published").architecture, get_task("sort"), seed=0)
    for array in model.weights.values():
        assert abs(array.std() / (0.8 / np.sqrt(128)) - 1) < 0.05
        assert abs(array.mean()) < 0.01


def test_frozen_matrices_start_as_the_identity_and_keys_unmixed():
    model = untrained(get_recipe("compression", "published").architecture, get_task("compression"), seed=0)
    np.testing.assert_array_equal(model.weights["blocks.1.attn.W_V"][0], np.eye(64))
    smeared = untrained(get_recipe("copy", "smeared").architecture, get_task("copy"), seed=0)
    assert not smeared.weights["blocks.0.attn.smear"].any()


def test_the_seed_decides():
    task, architecture = get_task("copy"), Architecture(1, 2, 8, 4)
    first, again, other = (untrained(architecture, task, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.W_E, again.W_E)
    assert not np.array_equal(first.W_E, other.W_E)


def test_the_control_has_the_shape_and_the_mask_of_the_model_it_stands_beside():
    model = untrained(get_recipe("compression", "published").architecture, get_task("compression"), seed=0)
    control = untrained_like(model.config, model.mask, seed=1)
    assert control.config == model.config
    np.testing.assert_array_equal(control.mask, model.mask)
    assert not np.array_equal(control.W_E, model.W_E)


@pytest.mark.parametrize("name", ["n_layers", "n_heads", "d_model", "d_head", "d_mlp"])
def test_a_model_that_no_memory_holds_is_refused_with_its_size(name):
    architecture = Architecture(**{"n_layers": 1, "n_heads": 1, "d_model": 8, "d_head": 8, name: 10**11})
    message = rf"{name}=100,000,000,000.* weights.* [\d,]+ GiB.* \d+ GiB"
    with pytest.raises(RaspLensError, match=message):
        untrained(architecture, get_task("copy"), 0)
