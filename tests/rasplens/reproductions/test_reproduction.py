import plotly.graph_objects as go
import pytest

from rasplens.learned import LearnedModel, get_recipe, untrained
from rasplens.reproductions.reproduction import GENERATOR, Finding, Reproduction, at_least, on_held_out
from rasplens.tasks import get_task


@pytest.fixture(scope="module")
def learned():
    model = untrained(get_recipe("copy", "fast").architecture, get_task("copy"), 0)
    return LearnedModel(model, "copy", {"origin": "untrained"})


@pytest.fixture
def entry():
    return Reproduction(
        name="mine",
        source="Somebody",
        model="some model",
        task="copy",
        recipe="fast",
        seed=0,
        findings=lambda task, model: [Finding(task.name, "1", str(model.config.n_layers))],
        figures=lambda task, model: {"first": go.Figure(), "second": go.Figure()},
    )


@pytest.mark.parametrize(("ours", "holds"), [(0.8999, False), (0.9, True), (1.0, True)])
def test_a_floor_holds_from_itself_on(ours, holds):
    found = at_least("accuracy", "0.9", ours, 0.9)
    assert (found.theirs, found.ours, found.holds) == ("0.9", f"{ours:.4f}", holds)


def test_findings_and_figures_are_those_of_the_task_and_of_the_model_that_is_given(entry, learned):
    assert entry.check(learned) == [Finding("copy", "1", "1", None)]
    pages = entry.pages(learned)
    assert list(pages) == ["mine_first.html", "mine_second.html"]
    assert all("plotly" in page and GENERATOR in page[:100] for page in pages.values())


def test_it_is_trained_as_it_says_unless_told_otherwise(entry, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "rasplens.reproductions.reproduction.train", lambda *given, **options: calls.append((given, options))
    )
    recipe = get_recipe("copy", "smeared")
    entry.train()
    entry.train(recipe, state_path="x")
    assert calls == [(("copy", "fast", 0), {}), (("copy", recipe, 0), {"state_path": "x"})]


def test_a_model_is_looked_at_on_what_it_was_not_trained_on(learned):
    task = get_task("copy")
    studied = on_held_out(task, learned.transformer)
    assert studied.pattern(0).shape[0] == len(task.held_out)
