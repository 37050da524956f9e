"""Both models run in the page: their attention is numpy's, and an input can be typed."""

from importlib.resources import files

import numpy as np
import pytest
from every_architecture import FEATURES

from rasplens.compare import write_report
from rasplens.compare.evidence.attention.kept_models import KeptModel

pytestmark = pytest.mark.slow

SCRIPT = (files("rasplens.compare.report") / "assets" / "transformer.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    page.add_script_tag(content=SCRIPT)
    yield page
    page.close()


@pytest.mark.parametrize("feature", FEATURES)
def test_the_page_attends_as_numpy_does(page, random_transformer, feature):
    config, options = FEATURES[feature]
    transformer = random_transformer(config, **options, dtype=np.float32)
    rng = np.random.default_rng(0)
    rows = rng.permuted(np.tile(np.arange(7), (5, 1)), axis=1).T  # each position names tokens in its own way
    kept = KeptModel(transformer, rows, places=(1, 2, 4))
    ids = rng.integers(0, 7, (1, 3))
    found = page.evaluate("([model, ids]) => attention(loaded(model), ids)", [kept.to_dict(), ids[0].tolist()])
    heads = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    assert len(found) == config.n_layers
    for layer, head in heads:
        np.testing.assert_allclose(found[layer][head], kept.pattern(ids, (layer, head))[0], atol=1e-5)


@pytest.fixture(scope="module")
def viewer(browser, floor, tmp_path_factory):
    path = tmp_path_factory.mktemp("typed") / "report.html"
    write_report(floor, path)
    page = browser.new_page()
    page.goto(path.as_uri(), wait_until="load")
    yield page.locator(".attention-view")
    page.close()


def test_a_typed_input_is_answered_by_the_models(viewer, floor):
    pairing, typed = floor.pairing, viewer.locator("input")
    names = pairing.task.token_names
    samples = [" ".join(names[i] for i in ids) for ids in pairing.ids[:2].tolist()]
    assert typed.input_value() == samples[0]
    said, select = [], viewer.locator("select").first
    for choose in (lambda: select.select_option(index=1), lambda: type_in(typed, samples[1])):
        type_in(typed, samples[1])
        select.select_option(index=0)  # also where it was chosen before
        assert typed.input_value() == samples[0]
        choose()
        assert typed.input_value() == samples[1]
        buttons = viewer.locator(".tokens").first.locator("button")
        buttons.nth(buttons.count() - 1).hover()
        said.append(viewer.locator(".attention-said").inner_text())
    assert said[0] == said[1] != ""
    type_in(typed, samples[0])
    assert viewer.locator(".attention-said").inner_text() != said[0]


def test_what_the_models_do_not_take_is_refused(viewer, floor):
    typed, refused = viewer.locator("input"), viewer.locator(".refused")
    before = viewer.locator(".attention-said").inner_text()
    for text, message in (("a", "An input has 9 tokens"), (" ".join(["nowhere"] * 9), "No token is written")):
        type_in(typed, text)
        assert message in refused.inner_text()
        assert viewer.locator(".attention-said").inner_text() == before
    type_in(typed, " ".join(floor.pairing.task.token_names[i] for i in floor.pairing.ids[0]))
    assert refused.inner_text() == ""


def type_in(field, text: str) -> None:
    field.fill(text)
    field.press("Enter")
