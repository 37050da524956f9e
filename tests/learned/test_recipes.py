from dataclasses import replace

import pytest

from rasplens.learned import RECIPES, get_recipe
from rasplens.tasks import TASKS, get_task


def test_every_task_has_recipes_whose_architecture_fits_it():
    assert set(RECIPES) == set(TASKS)
    for name, recipes in RECIPES.items():
        task = get_task(name)
        assert set(recipes) >= ({"fast"} if name == "induction" else {"fast", "published"})
        for recipe in recipes.values():
            config = recipe.architecture.config(task)
            assert (config.n_ctx, config.d_vocab, config.d_vocab_out) == (
                task.n_ctx,
                len(task.vocab),
                len(task.outputs),
            )


def test_the_published_hyperparameters():
    sort, copy, compression = (get_recipe(name, "published") for name in ("sort", "copy", "compression"))
    assert (sort.architecture.d_model, sort.architecture.n_layers, sort.architecture.n_heads) == (128, 1, 1)
    assert (copy.learning_rate, copy.weight_decay, copy.steps, copy.batch_size) == (1e-3, 1.0, 10_000, 256)
    assert copy.architecture.positions == "sinusoidal_qk"
    assert get_recipe("copy", "smeared").architecture.smeared_keys
    assert (compression.learning_rate, compression.weight_decay) == (1e-3, 0.01)
    assert compression.architecture.identity_v
    assert compression.architecture.identity_o


def test_the_published_copy_model_has_5760_parameters():
    from rasplens.learned import untrained

    task = get_task("copy")
    assert untrained(get_recipe("copy", "published").architecture, task, 0).n_params == 5_760


def test_an_unknown_recipe_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'sort' .*'slow'.* fast, published\."):
        get_recipe("sort", "slow")
    with pytest.raises(ValueError, match=r"'mine' .*'slow'.* fast, mlp\."):
        get_recipe("mine", "slow")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, r"Recipe\.steps .*whole number .*\[1, inf\); got 0"),
        ({"batch_size": 0}, r"Recipe\.batch_size .*\[1, inf\); got 0"),
        ({"learning_rate": 0.0}, r"Recipe\.learning_rate .*\(0, inf\); got 0"),
        ({"weight_decay": -5}, r"Recipe\.weight_decay .*\[0, inf\); got -5"),
        ({"clip": -1.0}, r"Recipe\.clip .*got -1\.0"),
        ({"stop_at": float("nan")}, r"Recipe\.stop_at .*got nan"),
        ({"learning_rate": float("inf")}, r"Recipe\.learning_rate .*got inf"),
        ({"b2": 1.0}, r"Recipe\.b2 .*\[0, 1\); got 1"),
        ({"steps": 2.5}, r"Recipe\.steps .*whole number.*got 2\.5"),
        ({"batch_size": True}, r"Recipe\.batch_size .*whole number.*got True"),
        ({"clip": "1"}, r"Recipe\.clip .*number.*got '1'"),
        ({"warmup": -1}, r"Recipe\.warmup .*got -1"),
        ({"warmup": 10_000}, "10000 steps; got 10000"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_trained_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(get_recipe("sort", "published"), **change)
