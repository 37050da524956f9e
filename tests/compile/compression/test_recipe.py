import pytest

from rasplens.compile.compression.recipe import RECIPES, CompressionRecipe, get_recipe


def test_the_papers_recipe_is_that_of_the_appendix():
    paper = get_recipe("paper")
    assert (paper.steps, paper.batch_size, paper.weight_decay) == (300_000, 256, 0.1)
    assert (paper.b1, paper.b2) == (0.9, 0.99)
    assert (paper.learning_rate, paper.final_learning_rate, paper.decay) == (1e-3, 1e-6, 0.5)
    assert (paper.layer_weight, paper.starts) == (1.0, 1)


def test_an_unknown_recipe_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match=f"no recipe 'slow'.*{', '.join(RECIPES)}"):
        get_recipe("slow")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "at least 1"),
        ({"batch_size": 0}, "at least 1"),
        ({"warmup": 100}, "warmup less than steps"),
        ({"final_learning_rate": 1.0}, "must fall"),
        ({"final_learning_rate": 0.0}, "must fall"),
        ({"decay": 0.0}, "must fall"),
        ({"weight_decay": -1.0}, "negative"),
        ({"layer_weight": -1.0}, "negative"),
        ({"starts": 0}, "starts must be"),
        ({"starts": 2, "trial": 200}, "trial from 1 to steps=100"),
        ({"output_loss": "hinge"}, "cross_entropy"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(changes, message):
    sensible = {"steps": 100, "batch_size": 8, "learning_rate": 1e-2, "final_learning_rate": 1e-3}
    CompressionRecipe(**sensible)
    with pytest.raises(ValueError, match=message):
        CompressionRecipe(**{**sensible, **changes})
