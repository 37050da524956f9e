"""What recipes of every kind have in common."""

import re
from dataclasses import fields, replace

import pytest

from rasplens.errors import RaspLensError
from rasplens.learned import SIITRecipe
from rasplens.learned.compressor.recipe import get_recipe as compression_recipe
from rasplens.learned.optimisation import INTERVALS
from rasplens.learned.recipes import get_recipe

RECIPES = get_recipe("sort", "fast"), SIITRecipe(), compression_recipe("fast")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
def test_every_kind_of_recipe_has_the_settings_of_the_optimiser(recipe):
    assert {field.name for field in fields(recipe)} >= {*INTERVALS}
    for name in INTERVALS:
        with pytest.raises(RaspLensError, match=re.escape(f"{type(recipe).__name__}.{name} must be")):
            replace(recipe, **{name: type(getattr(recipe, name))(-1)})
    with pytest.raises(RaspLensError, match=rf"warm-up.*{recipe.steps} steps; got {recipe.steps}"):
        replace(recipe, warmup=recipe.steps)
