"""Recipes from TOML: what is written is what is trained by, and mistakes are one line."""

import pytest

from rasplens.learned import Architecture, Recipe, SIITRecipe, read_recipe, read_siit_recipe

WHOLE = """
batch_size = 32
steps = 10
learning_rate = 1
weight_decay = 0.01
every_position = true

[architecture]
n_layers = 1
n_heads = 2
d_model = 8
d_head = 4
smeared_keys = true
"""


def test_a_file_is_the_recipe_that_it_says(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE)
    shape = Architecture(n_layers=1, n_heads=2, d_model=8, d_head=4, smeared_keys=True)
    assert read_recipe(path) == Recipe(shape, 32, 10, 1.0, 0.01, every_position=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("steps = 10", ""), "field 'steps' is missing"),
        (("steps = 10", "stepps = 10"), "no field 'stepps'.* architecture, batch_size, steps"),
        (("steps = 10", 'steps = "ten"'), "'steps' .*int; got 'ten'"),
        (("steps = 10", "steps = true"), "'steps' .*int; got True"),
        (("steps = 10", "steps = 0"), r"Recipe\.steps .*\[1, inf\); got 0"),
        (("d_head = 4", ""), r"\[architecture\]: .*field 'd_head' is missing"),
        (("[architecture]", "[shape]"), "no field 'shape'.* architecture, batch_size, steps"),
        ((WHOLE[WHOLE.index("[architecture]") :], ""), "field 'architecture' is missing"),
        (("[architecture]", "architecture = 3\n[more]"), "`architecture` .*table"),
        (("steps = 10", "steps"), r"mine\.toml .*TOML: "),
    ],
)
def test_a_mistake_is_one_line(tmp_path, change, said):
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE.replace(*change))
    with pytest.raises(ValueError, match=said) as caught:
        read_recipe(path)
    assert "\n" not in str(caught.value)


def test_a_recipe_of_siit_has_its_own_fields_and_a_shape_if_it_says_one(tmp_path):
    path = tmp_path / "siit.toml"
    path.write_text("steps = 300\nboth = 0\n")
    assert read_siit_recipe(path) == (SIITRecipe(steps=300, both=0.0), None)
    path.write_text("cycles = 1\n[architecture]\nn_layers = 2\nn_heads = 4\nd_model = 16\nd_head = 4\n")
    assert read_siit_recipe(path) == (SIITRecipe(cycles=1), Architecture(2, 4, 16, 4))
    path.write_text("every_position = true\n")
    with pytest.raises(ValueError, match=r"no field 'every_position'.* steps, cycles"):
        read_siit_recipe(path)
    path.write_text("both = 2\n")
    with pytest.raises(ValueError, match=r"SIITRecipe\.both .*\[0, 1\]; got 2"):
        read_siit_recipe(path)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"no\.toml .*: No such file"):
        read_recipe(tmp_path / "no.toml")


def test_what_is_nested_too_deep_is_no_recipe(tmp_path):
    (tmp_path / "deep.toml").write_text(f"steps = {'[' * 100_000}{']' * 100_000}")
    with pytest.raises(ValueError, match=r"deep\.toml .*nested"):
        read_recipe(tmp_path / "deep.toml")


@pytest.mark.parametrize(
    ("number", "message"),
    [("9" * 5000, r"large\.toml .*digits"), ("9" * 400, r"'batch_size' .*[\d,]{10,}")],
)
def test_numbers_that_nothing_holds_are_refused(tmp_path, number, message):
    (tmp_path / "large.toml").write_text(f"batch_size = {number}\nsteps = 5\n")
    with pytest.raises(ValueError, match=message):
        read_siit_recipe(tmp_path / "large.toml")
