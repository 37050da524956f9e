"""The shipped models: what they are, and that their figures are true."""

from importlib.resources import files

import numpy as np
import pytest

from rasplens.learned import Recipe, get_recipe, load_pretrained, pretrained_names
from rasplens.model.weight_circuits import full_ov_circuit
from rasplens.tasks import get_task


def test_one_model_per_task_under_two_megabytes_together():
    assert pretrained_names() == ["compression", "copy", "induction", "sort"]
    folder = files("rasplens.learned") / "pretrained"
    assert sum(len(file.read_bytes()) for file in folder.iterdir()) < 2_000_000


@pytest.mark.parametrize("name", ["compression", "copy", "induction", "sort"])
def test_each_says_how_it_was_made_and_its_figures_are_true(name):
    model, task = load_pretrained(name), get_task(name)
    provenance = model.provenance
    assert provenance["command"].startswith(f"rasplens train {name} --recipe {provenance['recipe_name']} --seed")
    assert Recipe.from_dict(provenance["recipe"]) == get_recipe(name, provenance["recipe_name"])
    accuracy = task.accuracy(model)
    assert accuracy.token == pytest.approx(provenance["accuracy"]["token"], abs=1e-3)
    assert accuracy.sequence == pytest.approx(provenance["accuracy"]["sequence"], abs=2e-3)


def test_sort_is_as_good_as_the_published_model_and_copies():
    task, model = get_task("sort"), load_pretrained("sort")
    fresh = task.draw(np.random.default_rng(1), 5_000)
    assert task.accuracy(model, fresh).token >= 0.9957
    circuit = full_ov_circuit(model.transformer, 0, 0)
    assert (circuit[:50].argmax(axis=1) == np.arange(50)).all()


def test_compression_is_as_good_as_the_published_two_layer_model():
    accuracy = get_task("compression").accuracy(load_pretrained("compression"))
    assert accuracy.token >= 0.9145
    assert accuracy.sequence >= 0.831


@pytest.mark.parametrize("prompt", ["ABCDEFABCDEF", "XYZRSTXYZRST"])
def test_copy_completes_the_published_prompts(prompt):
    model = load_pretrained("copy").transformer
    ids = [ord(letter) - ord("A") for letter in prompt]
    while len(ids) < 24:
        ids.append(int(model(np.array([ids]))[0, -1].argmax()))
    assert "".join(chr(ord("A") + i) for i in ids[12:]) == prompt


def test_a_task_without_a_shipped_model_is_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"'hist'.*compression, copy, induction, sort"):
        load_pretrained("hist")
