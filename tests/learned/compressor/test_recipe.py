import json
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from rasplens.learned.compressor.recipe import RECIPES, CompressionRecipe, get_recipe


def test_the_papers_recipe_is_that_of_the_appendix():
    paper = get_recipe("paper")
    assert (paper.steps, paper.batch_size, paper.weight_decay) == (300_000, 256, 0.1)
    assert (paper.b1, paper.b2) == (0.9, 0.99)
    assert (paper.learning_rate, paper.final_learning_rate, paper.decay) == (1e-3, 1e-6, 0.5)
    assert (paper.layer_weight, paper.starts) == (1.0, 1)


def test_an_unknown_recipe_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match=f"recipe 'slow'.*{', '.join(RECIPES)}"):
        get_recipe("slow")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, r"steps must be a whole number in \[1, inf\)"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"warmup": 100}, "warm-up.*100 steps; got 100"),
        ({"final_learning_rate": 1.0}, r"final_learning_rate.*learning_rate=0\.01; got 1\.0"),
        ({"final_learning_rate": 0.0}, "final_learning_rate must be"),
        ({"decay": 0.0}, r"decay must be a number in \(0, 1\]"),
        ({"weight_decay": -1.0}, "weight_decay must be"),
        ({"layer_weight": -1.0}, "layer_weight must be"),
        ({"starts": 0}, "starts must be"),
        ({"starts": 2, "trial": 200}, r"trial.*steps=100; got 200"),
        ({"starts": 2, "trial": 5, "fitted": 3}, r"fitted.*starts=2; got 3"),
        ({"rates": ()}, r"rates.*got \(\)"),
        ({"rates": (1.0, 0.1)}, r"starts=1.*got \(1\.0, 0\.1\)"),
        ({"rates": (2.0,)}, r"rates.*got \(2\.0,\)"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(changes, message):
    sensible = {"steps": 100, "batch_size": 8, "learning_rate": 1e-2, "final_learning_rate": 1e-3}
    CompressionRecipe(**sensible)
    with pytest.raises(ValueError, match=message):
        CompressionRecipe(**{**sensible, **changes})


def test_a_loss_that_there_is_not_is_refused():
    """Past the type checker that guards the tests, which users need not have."""
    fields = {**asdict(get_recipe("fast")), "output_loss": "hinge"}
    with pytest.raises(ValueError, match=r"output_loss.*'hinge'"):
        CompressionRecipe.__post_init__(SimpleNamespace(**fields))


def test_starts_at_the_full_rate_and_at_smaller_ones_have_heats_of_their_own():
    recipe = CompressionRecipe(100, 8, 1e-2, 1e-3, starts=5, trial=10, rates=(1.0, 0.1))
    assert recipe.heats == ((0, 2, 4), (1, 3))
    assert [recipe.rate(start) for start in range(5)] == [1.0, 0.1, 1.0, 0.1, 1.0]
    assert CompressionRecipe(100, 8, 1e-2, 1e-3).heats == ((0,),)
    assert CompressionRecipe(100, 8, 1e-2, 1e-3, rates=(0.1,)).heats == ((0,),)


def test_a_recipe_comes_back_from_json():
    recipe = get_recipe("fast")
    assert CompressionRecipe.from_dict(json.loads(json.dumps(asdict(recipe)))) == recipe
