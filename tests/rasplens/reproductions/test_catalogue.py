"""Every published model is trained again and its findings checked; on a smaller budget, with looser floors."""

from dataclasses import replace

import pytest

from rasplens.learned import get_recipe, load_pretrained
from rasplens.reproductions import REPRODUCTIONS
from rasplens.reproductions.copying import PROMPTS, completion
from rasplens.tasks import get_task


def findings(entry, learned):
    return {finding.measure: finding for finding in entry.check(learned)}


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_reproduction_has_a_recipe_and_a_command(name):
    entry = REPRODUCTIONS[name]
    recipe = get_recipe(entry.task, entry.recipe)
    assert recipe.architecture.config(get_task(entry.task))
    assert entry.command == f"rasplens reproduce {name}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sort", "compression", "copy_smeared"])
def test_the_shipped_models_have_the_published_findings(name):
    entry = REPRODUCTIONS[name]
    found = entry.check(load_pretrained(entry.task))
    assert [finding.measure for finding in found if finding.holds is False] == []
    assert sum(finding.holds is True for finding in found) >= 4


@pytest.mark.slow
def test_a_wrong_model_does_not_have_them():
    """The negative control: an untrained model of the same shape."""
    from rasplens.learned import LearnedModel, untrained

    for name in ("sort", "compression", "copy_smeared"):
        entry = REPRODUCTIONS[name]
        task = get_task(entry.task)
        model = untrained(get_recipe(entry.task, entry.recipe).architecture, task, 0)
        found = entry.check(LearnedModel(model, entry.task, {"origin": "untrained"}))
        assert sum(finding.holds is False for finding in found) >= 2, name


def test_completions_go_on_to_the_full_length():
    task, model = get_task("copy"), load_pretrained("copy").transformer
    for prompt in PROMPTS:
        assert len(prompt) + len(completion(task, model, prompt)) == task.n_ctx


@pytest.mark.slow
def test_figures_are_pages_of_their_own():
    for name, n in (("sort", 2), ("compression", 1), ("copy_smeared", 1)):
        entry = REPRODUCTIONS[name]
        pages = entry.pages(load_pretrained(entry.task))
        assert len(pages) == n
        for text in pages.values():
            assert "plotly" in text
            assert "<script src=" not in text


REDUCED = {
    "sort": (600, "token accuracy on 20,000 fresh lists", 0.97),
    "compression": (6_000, "token accuracy, held-out pairs", 0.85),
    "compression_three_layers": (4_000, "token accuracy, held-out pairs", 0.999),
    "compression_narrow": (3_000, "token accuracy, held-out pairs", 0.98),
    "copy_smeared": (2_500, "12-letter prompts completed, of held-out blocks of different letters", 0.95),
}


@pytest.mark.release
@pytest.mark.parametrize("name", REDUCED)
def test_a_smaller_budget_comes_close(name):
    steps, measure, floor = REDUCED[name]
    entry = REPRODUCTIONS[name]
    learned = entry.train(replace(get_recipe(entry.task, entry.recipe), steps=steps))
    assert float(findings(entry, learned)[measure].ours) >= floor


@pytest.mark.release
def test_without_smeared_keys_copying_fails_on_a_smaller_budget_too():
    entry = REPRODUCTIONS["copy"]
    learned = entry.train(replace(get_recipe(entry.task, entry.recipe), steps=2_500))
    found = findings(entry, learned)
    assert float(found["12-letter prompts completed, of held-out blocks of different letters"].ours) < 0.01
    assert float(found["token accuracy, held-out blocks"].ours) < 0.5
    assert float(found["copying score of the direct path"].ours) < -0.95
